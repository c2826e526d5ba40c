package connector

import (
	"context"
	"encoding/json"
	"slices"
)

// Form is how news is told.
type Form string

const (
	AsRequest      Form = "request"
	AsNotification Form = "notification"
	// Untold changes what is served without a word (fact 26).
	Untold Form = "untold"
)

// Verdict is the host's answer for one channel or message.
type Verdict struct {
	ID        string `json:"id,omitempty"`
	MessageID string `json:"messageId,omitempty"`
	Accepted  bool   `json:"accepted"`
	Reason    string `json:"reason,omitempty"`
}

// Changes are the params of channels/changed.
type Changes struct {
	Added   []Descriptor `json:"added,omitempty"`
	Removed []string     `json:"removed,omitempty"`
	Updated []Descriptor `json:"updated,omitempty"`
}

// Add serves more channels and tells the host. One with an id that is served
// replaces that one, and is not open. The verdicts are those of the host, in the
// form AsRequest.
func (c *Connector) Add(ctx context.Context, form Form, ds ...Descriptor) ([]Verdict, error) {
	return c.Changed(ctx, form, Changes{Added: ds})
}

// Remove stops serving channels, which are not open any more, and tells the host.
// Ids that are not served are told, too.
func (c *Connector) Remove(ctx context.Context, form Form, ids ...string) ([]Verdict, error) {
	return c.Changed(ctx, form, Changes{Removed: ids})
}

// Update changes the descriptors of channels and tells the host. A channel whose
// type or address changes is not open at its new place. Ids that are not served
// are told, too.
func (c *Connector) Update(ctx context.Context, form Form, ds ...Descriptor) ([]Verdict, error) {
	return c.Changed(ctx, form, Changes{Updated: ds})
}

// Announce tells a channel again, as added, with a preference for its start. It
// is the same channel: what is open stays open. One that is not served yet is added.
func (c *Connector) Announce(ctx context.Context, form Form, id string, initiallyOpen bool) ([]Verdict, error) {
	c.mu.Lock()
	ch := c.channel(id)
	if ch == nil {
		ch = &channel{Descriptor: NewDescriptor(id)}
		c.channels = append(c.channels, ch)
	}
	ch.InitiallyOpen = initiallyOpen
	d := ch.Descriptor
	c.mu.Unlock()
	c.bell.ring()
	return c.tell(ctx, form, Changes{Added: []Descriptor{d}})
}

// Changed removes, updates and adds, in this order, and tells it in one
// channels/changed. Where no host is connected, in every form but Untold, the
// change is made and the error is ErrNotConnected.
func (c *Connector) Changed(ctx context.Context, form Form, change Changes) ([]Verdict, error) {
	c.mu.Lock()
	c.apply(change)
	c.mu.Unlock()
	c.bell.ring()
	return c.tell(ctx, form, change)
}

func (c *Connector) tell(ctx context.Context, form Form, change Changes) ([]Verdict, error) {
	switch form {
	case Untold:
		return nil, nil
	case AsNotification:
		return nil, c.Notify(ctx, "channels/changed", change)
	default:
		result, err := c.Call(ctx, "channels/changed", change)
		return verdictsIn(result), err
	}
}

// apply changes what is served. c.mu is held.
func (c *Connector) apply(change Changes) {
	for _, id := range change.Removed {
		c.channels = slices.DeleteFunc(c.channels, func(ch *channel) bool { return ch.ID == id })
		delete(c.open, id)
	}
	for _, d := range change.Updated {
		ch := c.channel(d.ID)
		if ch == nil {
			continue
		}
		if !ch.sameTarget(d) {
			delete(c.open, d.ID)
		}
		ch.Descriptor = d
	}
	for _, d := range change.Added {
		ch := c.channel(d.ID)
		if ch == nil {
			ch = &channel{}
			c.channels = append(c.channels, ch)
		}
		ch.Descriptor = d
		delete(c.open, d.ID)
	}
}

// RegisterAll sends channels/register again, with all channels that are not
// SetListOnly, and returns the host's verdicts. With AsNotification there are none.
func (c *Connector) RegisterAll(ctx context.Context, form Form) ([]Verdict, error) {
	n, err := c.served()
	if err != nil {
		return nil, err
	}
	if form == AsNotification {
		return nil, n.registerAsNotification(ctx)
	}
	p, err := n.registerAsRequest(ctx)
	if err != nil {
		return nil, err
	}
	result, err := p.Wait(ctx)
	return verdictsIn(result), err
}

// SetListOnly keeps channels out of channels/register, as direct-message channels
// have been seen after a reconnect (fact 25), or lets them in again.
func (c *Connector) SetListOnly(listOnly bool, ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.channels {
		if slices.Contains(ids, ch.ID) {
			ch.listOnly = listOnly
		}
	}
}

// Channels returns what is served.
func (c *Connector) Channels() []Descriptor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.descriptors(true)
}

// Channel returns a served channel's descriptor.
func (c *Connector) Channel(id string) (Descriptor, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.channel(id); ch != nil {
		return ch.Descriptor, true
	}
	return Descriptor{}, false
}

// Verdicts returns the host's answer to the last channels/register.
func (c *Connector) Verdicts() []Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.verdicts)
}

// descriptors are those of the channels. c.mu is held.
func (c *Connector) descriptors(all bool) []Descriptor {
	ds := make([]Descriptor, 0, len(c.channels))
	for _, ch := range c.channels {
		if all || !ch.listOnly {
			ds = append(ds, ch.Descriptor)
		}
	}
	return ds
}

// registration is the params of channels/register.
func (c *Connector) registration() any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]any{"channels": c.descriptors(false)}
}

// judged takes in the answer to channels/register. c.mu is held.
func (c *Connector) judged(e Entry) {
	c.verdicts = verdictsIn(e.Result)
	if !c.behavior.DropUnaccepted {
		return
	}
	c.channels = slices.DeleteFunc(c.channels, func(ch *channel) bool {
		if ch.listOnly || slices.ContainsFunc(c.verdicts, func(v Verdict) bool { return v.ID == ch.ID && v.Accepted }) {
			return false
		}
		delete(c.open, ch.ID)
		return true
	})
}

// verdictsIn reads the results of a host's answer.
func verdictsIn(result json.RawMessage) []Verdict {
	var r struct {
		Results []Verdict `json:"results"`
	}
	// An answer in another shape has no verdicts.
	_ = json.Unmarshal(result, &r)
	return r.Results
}
