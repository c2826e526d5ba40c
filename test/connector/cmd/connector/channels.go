package main

import (
	"cmp"
	"fmt"

	"sigs.k8s.io/yaml"

	"mcpl.dev/operator/test/connector"
)

// readChannels reads a list of descriptors, in YAML or JSON. What one leaves out
// is that of connector.NewDescriptor.
func readChannels(text []byte) ([]connector.Descriptor, error) {
	var ds []connector.Descriptor
	if err := yaml.UnmarshalStrict(text, &ds); err != nil {
		return nil, err
	}
	for i, d := range ds {
		if d.ID == "" {
			return nil, fmt.Errorf("give channel %d an id", i+1)
		}
		usual := connector.NewDescriptor(d.ID)
		d.Type = cmp.Or(d.Type, usual.Type)
		d.Label = cmp.Or(d.Label, usual.Label)
		d.Direction = cmp.Or(d.Direction, usual.Direction)
		if d.Address == nil {
			d.Address = usual.Address
		}
		if d.Metadata == nil {
			d.Metadata = usual.Metadata
		}
		if d.Capabilities == nil {
			d.Capabilities = usual.Capabilities
		}
		ds[i] = d
	}
	return ds, nil
}
