package mcpl

import (
	"encoding/json"
	"fmt"
)

// List is a list that is sent as [] when it is nil: connectors expect a list
// where they look for one.
type List[T any] []T

// MarshalJSON implements json.Marshaler.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte(`[]`), nil
	}
	return marshal([]T(l))
}

// ReasonRepeated is the verdict on an id that stands in a list for the second time.
const ReasonRepeated = "id repeated"

// Verdict is the host's word on one submitted descriptor or removed id.
type Verdict struct {
	ID       string `json:"id"` // exactly as submitted (fact 28)
	Accepted bool   `json:"accepted"`
	Reason   string `json:"reason,omitempty"`
}

// RegisterParams are the params of channels/register.
type RegisterParams struct {
	Channels DescriptorList `json:"channels"`
}

// RegisterResult is the answer to channels/register. Both members are always
// sent: older connectors read the first, newer ones the second (fact 7).
type RegisterResult struct {
	Registered List[string]  `json:"registered"`
	Results    List[Verdict] `json:"results"`
}

// NewRegisterResult makes the answer from the verdicts.
func NewRegisterResult(verdicts []Verdict) RegisterResult {
	r := RegisterResult{Results: verdicts}
	for _, v := range verdicts {
		if v.Accepted {
			r.Registered = append(r.Registered, v.ID)
		}
	}
	return r
}

// ChangedParams are the params of channels/changed, to be processed in the order
// removed, updated, added (semantics §12.4).
type ChangedParams struct {
	Added   DescriptorList `json:"added"`
	Updated DescriptorList `json:"updated"`
	Removed IDList         `json:"removed"`
}

// ChangedResult is the answer to the request form of channels/changed.
type ChangedResult struct {
	Results List[Verdict] `json:"results"`
}

// IDList is a list of channel ids. An element may also be an object with an id
// (fact 14 has ids, descriptors are tolerated); what has none reads as "".
type IDList []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *IDList) UnmarshalJSON(raw []byte) error {
	*l = nil
	elements, err := decodeList[json.RawMessage](raw)
	if err != nil || elements == nil {
		return err
	}
	*l = make(IDList, 0, len(elements))
	for _, element := range elements {
		id := text(element)
		if isObject(element) {
			id = text(members(element)["id"])
		}
		*l = append(*l, id)
	}
	return nil
}

// ListResult is a connector's answer to channels/list.
type ListResult struct {
	Channels DescriptorList `json:"channels"`
}

// ListAnswer is the host's answer to channels/list.
type ListAnswer struct {
	Channels List[Descriptor] `json:"channels"`
}

// KnownChannels are the ids a connector has registered already, such as a
// sets.Set[string].
type KnownChannels interface {
	Has(id string) bool
	Len() int
}

// CheckDescriptors judges a list of channels/register or channels/changed.added:
// one verdict per element, in order (semantics §12.4). Rejected are a missing,
// empty or repeated id, one over 2,048 bytes or with control characters, a
// malformed element, and a new id beyond max channels; max 0 means no limit.
// known counts towards max, its ids may come again; nil means none.
func CheckDescriptors(list DescriptorList, max int, known KnownChannels) []Verdict {
	count := 0
	if known != nil {
		count = known.Len()
	}
	verdicts := make([]Verdict, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, s := range list {
		v := Verdict{ID: s.ID, Reason: s.Reason}
		isKnown := known != nil && known.Has(s.ID)
		switch {
		case s.Reason != "":
		case seen[s.ID]:
			v.Reason = ReasonRepeated
		case max > 0 && !isKnown && count >= max:
			v.Reason = fmt.Sprintf("over the limit of %d channels", max)
		default:
			v.Accepted = true
			seen[s.ID] = true
			if !isKnown {
				count++
			}
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}
