package connector

import (
	"context"
	"fmt"
)

// gate is what requests with a Hold or HoldAnswer of one name wait at.
// Connector.mu guards waiting.
type gate struct {
	open    chan struct{}
	waiting int
}

// gateNamed is the gate of that name. c.mu is held.
func (c *Connector) gateNamed(name string) *gate {
	g := c.gates[name]
	if g == nil {
		g = &gate{open: make(chan struct{})}
		c.gates[name] = g
	}
	return g
}

// pass waits at a gate; it is false if ctx ended first.
func (c *Connector) pass(ctx context.Context, name string) bool {
	c.mu.Lock()
	g := c.gateNamed(name)
	g.waiting++
	c.mu.Unlock()
	c.bell.ring()
	defer func() {
		c.mu.Lock()
		g.waiting--
		c.mu.Unlock()
		c.bell.ring()
	}()
	select {
	case <-g.open:
		return true
	case <-ctx.Done():
		return false
	}
}

// Release opens a gate for those who wait at it and, until Rehold, for those who
// come.
func (c *Connector) Release(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.gateNamed(name)
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// Rehold closes a gate again.
func (c *Connector) Rehold(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.gateNamed(name)
	select {
	case <-g.open:
		delete(c.gates, name)
	default:
	}
}

// Held is how many requests wait at a gate.
func (c *Connector) Held(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.gates[name]; g != nil {
		return g.waiting
	}
	return 0
}

// WaitHeld waits until n requests wait at a gate.
func (c *Connector) WaitHeld(ctx context.Context, name string, n int) error {
	if err := c.WaitUntil(ctx, func() bool { return c.Held(name) >= n }); err != nil {
		return fmt.Errorf("waited for %d requests at the gate %q: %w", n, name, err)
	}
	return nil
}
