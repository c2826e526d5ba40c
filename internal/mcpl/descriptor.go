package mcpl

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxChannelIDBytes bounds a channel id (semantics §12.4).
	MaxChannelIDBytes = 2048

	// maxTypeBytes, maxAddressBytes and maxLabelBytes bound the rest of a
	// descriptor that is kept. A label is cut; a type or an address cannot be,
	// because they are sent back.
	maxTypeBytes    = 256
	maxAddressBytes = 16 << 10
	maxLabelBytes   = 512
)

// Descriptor is what a connector says about a channel (semantics §2). Its
// metadata is not kept.
type Descriptor struct {
	ID   string `json:"id"`
	Type string `json:"type,omitempty"`
	// Label is sanitised, at most 512 bytes.
	Label     string `json:"label,omitempty"`
	Direction string `json:"direction,omitempty"`
	// Address is compact JSON; nil if absent.
	Address json.RawMessage `json:"address,omitempty"`
	// InitiallyOpen is the connector's preference to start open; false if absent.
	InitiallyOpen bool                `json:"initiallyOpen,omitempty"`
	Capabilities  ChannelCapabilities `json:"capabilities,omitzero"`
}

// ChannelCapabilities is what a channel can do; nil for what it cannot.
type ChannelCapabilities struct {
	History        *HistoryCapability        `json:"history,omitempty"`
	Acknowledgment *AcknowledgmentCapability `json:"acknowledgment,omitempty"`
}

// HistoryCapability says how much history an open can bring.
type HistoryCapability struct {
	// MaxMessages is 0 when the connector did not say.
	MaxMessages           int  `json:"maxMessages,omitempty"`
	SupportsBeforeMessage bool `json:"supportsBeforeMessage,omitempty"`
}

// AcknowledgmentCapability says how a message can be acknowledged.
type AcknowledgmentCapability struct {
	Kind          string `json:"kind,omitempty"` // such as "reaction"
	SupportsValue bool   `json:"supportsValue,omitempty"`
}

// SameTarget reports whether two descriptors lead to the same place: equal
// types and deeply equal addresses (semantics §2). An absent address equals null.
func (d Descriptor) SameTarget(other Descriptor) bool {
	return d.Type == other.Type && sameValue(d.Address, other.Address)
}

// Submitted is one element of a descriptor list as it arrived.
type Submitted struct {
	Descriptor
	// Reason says why the element can never be accepted; "" if it is well
	// formed. Only ID is set beside it.
	Reason string `json:"-"`
}

// DescriptorList reads a list of descriptors element by element, so that a
// malformed one does not spoil the others.
type DescriptorList []Submitted

// UnmarshalJSON implements json.Unmarshaler.
func (l *DescriptorList) UnmarshalJSON(raw []byte) error {
	*l = nil
	elements, err := decodeList[json.RawMessage](raw)
	if err != nil || elements == nil {
		return err
	}
	*l = make(DescriptorList, 0, len(elements))
	for _, element := range elements {
		*l = append(*l, parseDescriptor(element))
	}
	return nil
}

// Descriptors returns the well-formed elements.
func (l DescriptorList) Descriptors() []Descriptor {
	var out []Descriptor
	for _, s := range l {
		if s.Reason == "" {
			out = append(out, s.Descriptor)
		}
	}
	return out
}

// parseDescriptor reads one descriptor. What only describes the channel is read
// tolerantly; what identifies it must be right.
func parseDescriptor(raw json.RawMessage) Submitted {
	var w struct {
		ID            json.RawMessage `json:"id"`
		Type          json.RawMessage `json:"type"`
		Label         json.RawMessage `json:"label"`
		Direction     json.RawMessage `json:"direction"`
		Address       json.RawMessage `json:"address"`
		InitiallyOpen json.RawMessage `json:"initiallyOpen"`
		Capabilities  json.RawMessage `json:"capabilities"`
	}
	if !isObject(raw) || json.Unmarshal(raw, &w) != nil {
		return Submitted{Reason: "not a descriptor"}
	}
	d := Descriptor{ID: text(w.ID)}
	if !isNull(w.ID) && !isString(w.ID) {
		return Submitted{Reason: "id is not a string"}
	}
	if reason := idFault(d.ID); reason != "" {
		return Submitted{Descriptor: d, Reason: reason}
	}
	if !isNull(w.Type) && !isString(w.Type) {
		return Submitted{Descriptor: d, Reason: "type is not a string"}
	}
	kind, address := text(w.Type), compact(w.Address)
	if len(kind) > maxTypeBytes {
		return Submitted{Descriptor: d, Reason: "type too long"}
	}
	if len(address) > maxAddressBytes {
		return Submitted{Descriptor: d, Reason: "address too long"}
	}
	d.Type, d.Address = kind, address
	d.Label = Sanitize(text(w.Label), maxLabelBytes)
	d.Direction = Sanitize(text(w.Direction), maxNameBytes)
	d.InitiallyOpen = isTrue(w.InitiallyOpen)
	d.Capabilities = parseCapabilities(w.Capabilities)
	return Submitted{Descriptor: d}
}

// ValidID reports whether a channel id may be registered (semantics §12.4).
func ValidID(id string) bool {
	return idFault(id) == ""
}

// idFault says what is wrong with a channel id (semantics §12.4). One that JSON
// could not decode exactly would come back to the connector changed.
func idFault(id string) string {
	switch {
	case id == "":
		return "id missing or empty"
	case len(id) > MaxChannelIDBytes:
		return "id over 2048 bytes"
	case strings.ContainsFunc(id, unicode.IsControl):
		return "control characters in id"
	case strings.ContainsRune(id, utf8.RuneError):
		return "id is not valid text"
	}
	return ""
}

func parseCapabilities(raw json.RawMessage) ChannelCapabilities {
	var c ChannelCapabilities
	m := members(raw)
	if h := m["history"]; isObject(h) {
		c.History = &HistoryCapability{SupportsBeforeMessage: isTrue(members(h)["supportsBeforeMessage"])}
		if n := 0; json.Unmarshal(members(h)["maxMessages"], &n) == nil && n > 0 {
			c.History.MaxMessages = n
		}
	}
	if a := m["acknowledgment"]; isObject(a) {
		c.Acknowledgment = &AcknowledgmentCapability{
			Kind:          Sanitize(text(members(a)["kind"]), maxNameBytes),
			SupportsValue: isTrue(members(a)["supportsValue"]),
		}
	}
	return c
}
