package connector

import (
	"context"
	"encoding/json"
	"fmt"
)

// Channels is Connector.Channels.
func (c *Control) Channels(ctx context.Context) ([]Descriptor, error) {
	return ask[[]Descriptor](ctx, c, "channels", nil)
}

// OpenChannels is Connector.OpenChannels.
func (c *Control) OpenChannels(ctx context.Context) ([]string, error) {
	return ask[[]string](ctx, c, "openChannels", nil)
}

// Verdicts is Connector.Verdicts.
func (c *Control) Verdicts(ctx context.Context) ([]Verdict, error) {
	return ask[[]Verdict](ctx, c, "verdicts", nil)
}

// Add is Connector.Add.
func (c *Control) Add(ctx context.Context, form Form, ds ...Descriptor) ([]Verdict, error) {
	return c.Changed(ctx, form, Changes{Added: ds})
}

// Remove is Connector.Remove.
func (c *Control) Remove(ctx context.Context, form Form, ids ...string) ([]Verdict, error) {
	return c.Changed(ctx, form, Changes{Removed: ids})
}

// Update is Connector.Update.
func (c *Control) Update(ctx context.Context, form Form, ds ...Descriptor) ([]Verdict, error) {
	return c.Changed(ctx, form, Changes{Updated: ds})
}

// Changed is Connector.Changed.
func (c *Control) Changed(ctx context.Context, form Form, change Changes) ([]Verdict, error) {
	return ask[[]Verdict](ctx, c, "changed", changeArgs{Form: form, Changes: change})
}

// Announce is Connector.Announce.
func (c *Control) Announce(ctx context.Context, form Form, id string, initiallyOpen bool) ([]Verdict, error) {
	return ask[[]Verdict](ctx, c, "announce", announceArgs{Form: form, ID: id, InitiallyOpen: initiallyOpen})
}

// RegisterAll is Connector.RegisterAll.
func (c *Control) RegisterAll(ctx context.Context, form Form) ([]Verdict, error) {
	return ask[[]Verdict](ctx, c, "registerAll", formArgs{Form: form})
}

// SetListOnly is Connector.SetListOnly.
func (c *Control) SetListOnly(ctx context.Context, listOnly bool, ids ...string) error {
	return c.invoke(ctx, "setListOnly", listOnlyArgs{ListOnly: listOnly, IDs: ids}, nil)
}

// SetHistory is Connector.SetHistory.
func (c *Control) SetHistory(ctx context.Context, channelID string, messages ...Message) error {
	return c.invoke(ctx, "setHistory", messagesArgs{ChannelID: channelID, Messages: messages}, nil)
}

// SetMuted is Connector.SetMuted.
func (c *Control) SetMuted(ctx context.Context, channelID string, muted bool) error {
	return c.invoke(ctx, "setMuted", mutedArgs{ChannelID: channelID, Muted: muted}, nil)
}

// Say is Connector.Say.
func (c *Control) Say(ctx context.Context, s Spoken) (Delivery, error) {
	return ask[Delivery](ctx, c, "say", s)
}

// Incoming is Connector.Incoming.
func (c *Control) Incoming(ctx context.Context, messages ...Message) ([]Verdict, error) {
	return ask[[]Verdict](ctx, c, "incoming", messagesArgs{Messages: messages})
}

// PushEvent is Connector.PushEvent.
func (c *Control) PushEvent(ctx context.Context, p Push) (Verdict, error) {
	return ask[Verdict](ctx, c, "pushEvent", p)
}

// Call is Connector.Call.
func (c *Control) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	body, err := raw(params)
	if err != nil {
		return nil, fmt.Errorf("write the params of %s as JSON: %w", method, err)
	}
	return ask[json.RawMessage](ctx, c, "call", sayArgs{Method: method, Params: body})
}

// Notify is Connector.Notify.
func (c *Control) Notify(ctx context.Context, method string, params any) error {
	body, err := raw(params)
	if err != nil {
		return fmt.Errorf("write the params of %s as JSON: %w", method, err)
	}
	return c.invoke(ctx, "notify", sayArgs{Method: method, Params: body}, nil)
}

// SendRaw is Connector.SendRaw.
func (c *Control) SendRaw(ctx context.Context, frame string) error {
	return c.invoke(ctx, "sendRaw", frameArgs{Frame: frame}, nil)
}

// Entries is Connector.Entries.
func (c *Control) Entries(ctx context.Context, f Filter) ([]Entry, error) {
	return ask[[]Entry](ctx, c, "entries", f)
}

// Requests is Connector.Requests.
func (c *Control) Requests(ctx context.Context, method, channelID string) ([]Entry, error) {
	return c.Entries(ctx, Asked(method, channelID))
}

// Counts is Connector.Counts.
func (c *Control) Counts(ctx context.Context) ([]Count, error) {
	return ask[[]Count](ctx, c, "counts", nil)
}

// Count is Connector.Count.
func (c *Control) Count(ctx context.Context, method, channelID string) (int, error) {
	return ask[int](ctx, c, "count", countArgs{Method: method, ChannelID: channelID})
}

// Wait is Connector.Wait.
func (c *Control) Wait(ctx context.Context, f Filter, n int) ([]Entry, error) {
	return ask[[]Entry](ctx, c, "wait", waitArgs{Filter: f, N: n})
}

// WaitCount is Connector.WaitCount.
func (c *Control) WaitCount(ctx context.Context, method, channelID string, n int) error {
	return c.invoke(ctx, "waitCount", countArgs{Method: method, ChannelID: channelID, N: n}, nil)
}

// WaitOpen is Connector.WaitOpen.
func (c *Control) WaitOpen(ctx context.Context, channelID string, open bool) error {
	return c.invoke(ctx, "waitOpen", openArgs{ChannelID: channelID, Open: open}, nil)
}

// WaitRegistered is Connector.WaitRegistered.
func (c *Control) WaitRegistered(ctx context.Context) error {
	return c.invoke(ctx, "waitRegistered", nil, nil)
}

// Reset is Connector.Reset.
func (c *Control) Reset(ctx context.Context) error {
	return c.invoke(ctx, "reset", nil, nil)
}
