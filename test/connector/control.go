package connector

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Control drives a connector in another process over its control API. Its methods
// do what those of the same name of Connector do, and return the same errors.
type Control struct {
	url    string
	client *http.Client
}

// NewControl takes a connector's ControlURL.
func NewControl(url string) *Control {
	// Kept connections would be goroutines that nobody ends.
	transport := &http.Transport{DisableKeepAlives: true}
	return &Control{url: strings.TrimSuffix(url, "/"), client: &http.Client{Transport: transport}}
}

// invoke calls an operation. args may be nil, and out as well.
func (c *Control) invoke(ctx context.Context, name string, args, out any) error {
	var body bytes.Buffer
	if args != nil {
		if err := json.NewEncoder(&body).Encode(args); err != nil {
			return fmt.Errorf("write the arguments of %s as JSON: %w", name, err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/"+name, &body)
	if err != nil {
		return err
	}
	resp, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	decoder := json.NewDecoder(resp.Body)
	if resp.StatusCode != http.StatusOK {
		var f failure
		if err := decoder.Decode(&f); err != nil || f.Message == "" {
			return fmt.Errorf("%s is answered with %s: is this the URL of a control API?", r.URL, resp.Status)
		}
		return f.error()
	}
	if out == nil {
		return nil
	}
	if err := decoder.Decode(out); err != nil {
		return fmt.Errorf("read the result of %s: %w", name, err)
	}
	return nil
}

// ask calls an operation for its result.
func ask[Out any](ctx context.Context, c *Control, name string, args any) (Out, error) {
	var out Out
	err := c.invoke(ctx, name, args, &out)
	return out, err
}

// Status is Connector.Status.
func (c *Control) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, "status", nil)
}

// Violations is Connector.Violations.
func (c *Control) Violations(ctx context.Context) ([]Violation, error) {
	return ask[[]Violation](ctx, c, "violations", nil)
}

// Behavior is Connector.Behavior.
func (c *Control) Behavior(ctx context.Context) (Behavior, error) {
	return ask[Behavior](ctx, c, "behavior", nil)
}

// SetBehavior is Connector.SetBehavior.
func (c *Control) SetBehavior(ctx context.Context, b Behavior) error {
	return c.invoke(ctx, "setBehavior", b, nil)
}

// Change is Connector.Change. It reads the behaviour and writes it back.
func (c *Control) Change(ctx context.Context, edit func(*Behavior)) error {
	b, err := c.Behavior(ctx)
	if err != nil {
		return err
	}
	edit(&b)
	return c.SetBehavior(ctx, b)
}

// Manifest is Connector.Manifest.
func (c *Control) Manifest(ctx context.Context) (Manifest, error) {
	return ask[Manifest](ctx, c, "manifest", nil)
}

// SetManifest is Connector.SetManifest.
func (c *Control) SetManifest(ctx context.Context, m Manifest) error {
	return c.invoke(ctx, "setManifest", m, nil)
}

// ManifestChanged is Connector.ManifestChanged.
func (c *Control) ManifestChanged(ctx context.Context) error {
	return c.invoke(ctx, "manifestChanged", nil, nil)
}

// Once is Connector.Once.
func (c *Control) Once(ctx context.Context, rs ...Rule) error {
	return c.invoke(ctx, "once", rulesArgs{Rules: rs}, nil)
}

// Always is Connector.Always.
func (c *Control) Always(ctx context.Context, rs ...Rule) error {
	return c.invoke(ctx, "always", rulesArgs{Rules: rs}, nil)
}

// ClearRules is Connector.ClearRules.
func (c *Control) ClearRules(ctx context.Context) error {
	return c.invoke(ctx, "clearRules", nil, nil)
}

// UnusedRules is Connector.UnusedRules.
func (c *Control) UnusedRules(ctx context.Context) ([]Rule, error) {
	return ask[[]Rule](ctx, c, "unusedRules", nil)
}

// Release is Connector.Release.
func (c *Control) Release(ctx context.Context, gate string) error {
	return c.invoke(ctx, "release", gateArgs{Gate: gate}, nil)
}

// Rehold is Connector.Rehold.
func (c *Control) Rehold(ctx context.Context, gate string) error {
	return c.invoke(ctx, "rehold", gateArgs{Gate: gate}, nil)
}

// WaitHeld is Connector.WaitHeld.
func (c *Control) WaitHeld(ctx context.Context, gate string, n int) error {
	return c.invoke(ctx, "waitHeld", gateArgs{Gate: gate, N: n}, nil)
}

// Drop is Connector.Drop.
func (c *Control) Drop(ctx context.Context) error {
	return c.invoke(ctx, "drop", nil, nil)
}

// DropMidFrame is Connector.DropMidFrame.
func (c *Control) DropMidFrame(ctx context.Context) error {
	return c.invoke(ctx, "dropMidFrame", nil, nil)
}

// Disconnect is Connector.Disconnect.
func (c *Control) Disconnect(ctx context.Context, code int, reason string) error {
	return c.invoke(ctx, "disconnect", disconnectArgs{Code: code, Reason: reason}, nil)
}

// Restart is Connector.Restart.
func (c *Control) Restart(ctx context.Context) error {
	return c.invoke(ctx, "restart", nil, nil)
}

// Pause is Connector.Pause.
func (c *Control) Pause(ctx context.Context) error {
	return c.invoke(ctx, "pause", nil, nil)
}

// Resume is Connector.Resume.
func (c *Control) Resume(ctx context.Context) error {
	return c.invoke(ctx, "resume", nil, nil)
}

// Freeze is Connector.Freeze.
func (c *Control) Freeze(ctx context.Context) error {
	return c.invoke(ctx, "freeze", nil, nil)
}

// Thaw is Connector.Thaw.
func (c *Control) Thaw(ctx context.Context) error {
	return c.invoke(ctx, "thaw", nil, nil)
}
