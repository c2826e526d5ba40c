package bench

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// Touch changes an annotation that means nothing on every Pod, Connector and Channel, and waits
// until the operator has looked at each Connector and each Channel since.
func (f *Fleet) Touch(ctx context.Context, round int) error {
	before, err := f.Sample()
	if err != nil {
		return err
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"bench":"%d"}}}`, round))
	touch := func(ctx context.Context, o client.Object, name string) error {
		o.SetNamespace(f.namespace)
		o.SetName(name)
		return f.lab.admin.Patch(ctx, o, patch)
	}
	for i := range f.size.Connectors {
		if err := touch(ctx, &corev1.Pod{}, f.connectorName(i)+"-0"); err != nil {
			return err
		}
		if err := touch(ctx, &v1.Connector{}, f.connectorName(i)); err != nil {
			return err
		}
	}
	if _, err := inParallel(ctx, Parallelism, f.size.Channels(), func(ctx context.Context, i int) error {
		return touch(ctx, &v1.Channel{}, f.channelName(i))
	}); err != nil {
		return err
	}
	return eventually(ctx, "everything that was touched is reconciled", func(context.Context) (bool, error) {
		d, err := f.Since(before)
		return d.Reconciles["channel"] >= f.size.Channels() && d.Reconciles["connector"] >= f.size.Connectors, err
	})
}
