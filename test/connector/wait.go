package connector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// bell wakes everybody who waits for news.
type bell struct {
	mu   sync.Mutex
	next chan struct{} // nil if nobody waits
}

// wait returns a channel that the next ring closes.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// ErrCountsOnly is the error of waiting for an entry of a journal without any.
var ErrCountsOnly = errors.New("the journal keeps only counts: use WaitUntil, or a JournalKeep that is not negative")

// WaitUntil waits until condition holds. It is asked again after each new entry
// and each change of what is connected, registered, open or held and of the
// violations, and may call any method of the connector.
func (c *Connector) WaitUntil(ctx context.Context, condition func() bool) error {
	for {
		news := c.bell.wait()
		if condition() {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("the connector's state: %w%s", ctx.Err(), c.lastEntries())
		case <-c.life.Done():
			return ErrClosed
		}
	}
}

// WaitFor waits for the first entry since the last Reset that fits.
func (c *Connector) WaitFor(ctx context.Context, fits func(Entry) bool) (Entry, error) {
	if c.journal.keep < 0 {
		return Entry{}, ErrCountsOnly
	}
	var seen int64
	var found Entry
	err := c.WaitUntil(ctx, func() bool {
		for _, e := range c.journal.since(seen) {
			seen = e.Seq
			if fits(e) {
				found = e
				return true
			}
		}
		return false
	})
	return found, err
}

// Wait waits until n entries since the last Reset are selected, and returns them
// and what else is selected by then.
func (c *Connector) Wait(ctx context.Context, f Filter, n int) ([]Entry, error) {
	if c.journal.keep < 0 {
		return nil, ErrCountsOnly
	}
	var found []Entry
	seen := f.After
	err := c.WaitUntil(ctx, func() bool {
		for _, e := range c.journal.since(seen) {
			seen = e.Seq
			if f.matches(e) {
				found = append(found, e)
			}
		}
		return len(found) >= n
	})
	if err != nil {
		return found, fmt.Errorf("waited for %d of %s, saw %d: %w", n, f, len(found), err)
	}
	return found, nil
}

// WaitCount waits until the host has made n requests of a method for a channel
// (for all if ""). It works in every mode of the journal.
func (c *Connector) WaitCount(ctx context.Context, method, channelID string, n int) error {
	err := c.WaitUntil(ctx, func() bool { return c.Count(method, channelID) >= n })
	if err != nil {
		return fmt.Errorf("waited for %d of %s %s, saw %d: %w", n, method, channelID, c.Count(method, channelID), err)
	}
	return nil
}

// WaitOpen waits until a channel is really open, or really closed.
func (c *Connector) WaitOpen(ctx context.Context, channelID string, open bool) error {
	err := c.WaitUntil(ctx, func() bool { return c.IsOpen(channelID) == open })
	if err != nil {
		return fmt.Errorf("waited for open=%t of %s: %w", open, channelID, err)
	}
	return nil
}

// WaitRegistered waits until a host has answered this connection's
// channels/register (or it was sent, if in the form of a notification).
func (c *Connector) WaitRegistered(ctx context.Context) error {
	if err := c.WaitUntil(ctx, func() bool { return c.Status().Registered }); err != nil {
		return fmt.Errorf("waited for an answer to channels/register: %w", err)
	}
	return nil
}

// lastEntries ends a message about something that did not come.
func (c *Connector) lastEntries() string {
	entries := c.journal.selected(Filter{})
	if len(entries) == 0 {
		return "; the journal is empty"
	}
	entries = entries[max(0, len(entries)-8):]
	var b strings.Builder
	b.WriteString("; the journal's last entries:")
	for _, e := range entries {
		b.WriteString("\n\t" + e.String())
	}
	return b.String()
}
