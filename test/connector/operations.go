package connector

import (
	"context"
	"encoding/json"
	"net/http"
)

// The arguments of operations that take more than one thing.
type (
	changeArgs struct {
		Form Form `json:"form,omitempty"` // default: request
		Changes
	}
	announceArgs struct {
		Form          Form   `json:"form,omitempty"`
		ID            string `json:"id"`
		InitiallyOpen bool   `json:"initiallyOpen"`
	}
	formArgs struct {
		Form Form `json:"form,omitempty"`
	}
	listOnlyArgs struct {
		ListOnly bool     `json:"listOnly"`
		IDs      []string `json:"ids"`
	}
	messagesArgs struct {
		ChannelID string    `json:"channelId,omitempty"`
		Messages  []Message `json:"messages"`
	}
	mutedArgs struct {
		ChannelID string `json:"channelId"`
		Muted     bool   `json:"muted"`
	}
	sayArgs struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
	}
	frameArgs struct {
		Frame string `json:"frame"`
	}
	gateArgs struct {
		Gate string `json:"gate"`
		N    int    `json:"n,omitempty"`
	}
	rulesArgs struct {
		Rules []Rule `json:"rules"`
	}
	disconnectArgs struct {
		Code   int    `json:"code"`
		Reason string `json:"reason,omitempty"`
	}
	waitArgs struct {
		Filter
		N int `json:"n"`
	}
	countArgs struct {
		Method    string `json:"method"`
		ChannelID string `json:"channelId,omitempty"`
		N         int    `json:"n,omitempty"`
	}
	openArgs struct {
		ChannelID string `json:"channelId"`
		Open      bool   `json:"open"`
	}
)

// operations are the control API: what a Connector's methods do, by their names.
func (c *Connector) operations() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"status":       get(c.Status),
		"violations":   get(c.Violations),
		"behavior":     get(c.Behavior),
		"setBehavior":  set(c.SetBehavior),
		"manifest":     get(c.Manifest),
		"setManifest":  set(c.SetManifest),
		"channels":     get(c.Channels),
		"openChannels": get(c.OpenChannels),
		"verdicts":     get(c.Verdicts),
		"setListOnly":  set(func(a listOnlyArgs) { c.SetListOnly(a.ListOnly, a.IDs...) }),
		"setHistory":   set(func(a messagesArgs) { c.SetHistory(a.ChannelID, a.Messages...) }),
		"setMuted":     set(func(a mutedArgs) { c.SetMuted(a.ChannelID, a.Muted) }),

		"changed": operation(func(ctx context.Context, a changeArgs) ([]Verdict, error) {
			return c.Changed(ctx, a.Form, a.Changes)
		}),
		"announce": operation(func(ctx context.Context, a announceArgs) ([]Verdict, error) {
			return c.Announce(ctx, a.Form, a.ID, a.InitiallyOpen)
		}),
		"registerAll": operation(func(ctx context.Context, a formArgs) ([]Verdict, error) {
			return c.RegisterAll(ctx, a.Form)
		}),
		"say": operation(c.Say),
		"incoming": operation(func(ctx context.Context, a messagesArgs) ([]Verdict, error) {
			return c.Incoming(ctx, a.Messages...)
		}),
		"pushEvent": operation(c.PushEvent),
		"call": operation(func(ctx context.Context, a sayArgs) (json.RawMessage, error) {
			return c.Call(ctx, a.Method, optional(a.Params))
		}),
		"notify": do(func(ctx context.Context, a sayArgs) error {
			return c.Notify(ctx, a.Method, optional(a.Params))
		}),
		"sendRaw":         do(func(ctx context.Context, a frameArgs) error { return c.SendRaw(ctx, a.Frame) }),
		"manifestChanged": do(func(ctx context.Context, _ none) error { return c.ManifestChanged(ctx) }),

		"once":        set(func(a rulesArgs) { c.Once(a.Rules...) }),
		"always":      set(func(a rulesArgs) { c.Always(a.Rules...) }),
		"clearRules":  set(func(none) { c.ClearRules() }),
		"unusedRules": get(c.UnusedRules),
		"release":     set(func(a gateArgs) { c.Release(a.Gate) }),
		"rehold":      set(func(a gateArgs) { c.Rehold(a.Gate) }),
		"waitHeld":    do(func(ctx context.Context, a gateArgs) error { return c.WaitHeld(ctx, a.Gate, a.N) }),

		"drop":         do(func(context.Context, none) error { return c.Drop() }),
		"dropMidFrame": do(func(ctx context.Context, _ none) error { return c.DropMidFrame(ctx) }),
		"disconnect":   do(func(_ context.Context, a disconnectArgs) error { return c.Disconnect(a.Code, a.Reason) }),
		"restart":      set(func(none) { c.Restart() }),
		"pause":        do(func(context.Context, none) error { return c.Pause() }),
		// The listener outlives the request.
		"resume": do(func(ctx context.Context, _ none) error { return c.Resume(context.WithoutCancel(ctx)) }),
		"freeze": set(func(none) { c.Freeze() }),
		"thaw":   set(func(none) { c.Thaw() }),

		"entries": operation(func(_ context.Context, f Filter) ([]Entry, error) { return c.Entries(f), nil }),
		"counts":  get(c.Counts),
		"count": operation(func(_ context.Context, a countArgs) (int, error) {
			return c.Count(a.Method, a.ChannelID), nil
		}),
		"wait": operation(func(ctx context.Context, a waitArgs) ([]Entry, error) {
			return c.Wait(ctx, a.Filter, a.N)
		}),
		"waitCount": do(func(ctx context.Context, a countArgs) error {
			return c.WaitCount(ctx, a.Method, a.ChannelID, a.N)
		}),
		"waitOpen":       do(func(ctx context.Context, a openArgs) error { return c.WaitOpen(ctx, a.ChannelID, a.Open) }),
		"waitRegistered": do(func(ctx context.Context, _ none) error { return c.WaitRegistered(ctx) }),
		"reset":          set(func(none) { c.Reset() }),
	}
}

func get[Out any](f func() Out) http.HandlerFunc {
	return operation(func(context.Context, none) (Out, error) { return f(), nil })
}

func set[In any](f func(In)) http.HandlerFunc {
	return operation(func(_ context.Context, in In) (none, error) {
		f(in)
		return none{}, nil
	})
}

func do[In any](f func(context.Context, In) error) http.HandlerFunc {
	return operation(func(ctx context.Context, in In) (none, error) { return none{}, f(ctx, in) })
}

// optional is params, or nil if there are none: an empty RawMessage is no JSON.
func optional(params json.RawMessage) any {
	if len(params) == 0 {
		return nil
	}
	return params
}
