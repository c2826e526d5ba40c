package mcpl

import (
	"context"
	"errors"
	"fmt"
)

// Transport carries the frames of one connection. Read is called by one
// goroutine at a time, Write by one at a time; Read, Write, Ping and Close may
// run at the same time.
type Transport interface {
	// Read returns the next frame: one message, or several lines of them. It
	// fails with a *PeerClosedError when the peer said goodbye, with
	// ErrMessageTooBig for a message over the transport's limit, and with any
	// other error when the connection is lost. No Read succeeds after a failed
	// one, or after Close has returned.
	Read(ctx context.Context) ([]byte, error)

	// Write sends one message, without a line end. When ctx ends before all of
	// it is written the connection is lost.
	Write(ctx context.Context, line []byte) error

	// Ping returns when the peer has shown that it is there, or at the end of
	// ctx. It needs a concurrent Read to see the answer. An error other than
	// the end of ctx means that the connection is lost.
	Ping(ctx context.Context) error

	// Close says goodbye with the reason and ends the connection. It returns
	// within a few seconds whatever the peer does, and may be called again.
	Close(reason string) error
}

// ErrMessageTooBig is returned by a Transport's Read for a message over its limit.
var ErrMessageTooBig = errors.New("message over the size limit")

// PeerClosedError is returned by a Transport's Read after the peer closed in an
// orderly way.
type PeerClosedError struct {
	// Code is the transport's status code (WebSocket: RFC 6455 §7.4), 0 where
	// it has none.
	Code int
	// Reason is the peer's text, sanitised and at most 123 bytes.
	Reason string
}

// Error implements error.
func (e *PeerClosedError) Error() string {
	s := "closed by the connector"
	if e.Code != 0 {
		s += fmt.Sprintf(" with code %d", e.Code)
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}
