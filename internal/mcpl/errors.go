package mcpl

import (
	"encoding/json"
	"fmt"
)

// Outcome says what a failed request may have done (semantics §12.5).
type Outcome string

const (
	// NotSent: nothing of the request was handed to the socket. The only
	// outcome that proves that the connector did not act.
	NotSent Outcome = "NotSent"
	// ErrorResponse: the connector answered with an error.
	ErrorResponse Outcome = "ErrorResponse"
	// NoResponse: no answer came in time or before the connection ended; the
	// connector may have acted.
	NoResponse Outcome = "NoResponse"
)

// maxErrorMessage and maxErrorData bound, in bytes, what is kept of a
// connector's error.
const (
	maxErrorMessage = 256
	maxErrorData    = 4 << 10
)

// CallError is the error of a request to the connector.
type CallError struct {
	Outcome Outcome
	// Code is the connector's error code; 0 unless Outcome is ErrorResponse.
	Code int
	// Message is the connector's text (untrusted: sanitised, at most 256
	// bytes), or what kept the request from being answered.
	Message string
	// Data is the connector's error data; nil if there was none or more than 4 KiB.
	Data json.RawMessage

	cause error
}

// Error implements error. The text is the same for the same failure.
func (e *CallError) Error() string {
	switch e.Outcome {
	case ErrorResponse:
		return fmt.Sprintf("connector answered error %d: %s", e.Code, e.Message)
	case NotSent:
		return "not sent: " + e.Message
	default:
		return "no response: " + e.Message
	}
}

// Unwrap returns context.DeadlineExceeded after a timeout, context.Canceled
// after Cancel, and the *ConnError when the connection ended.
func (e *CallError) Unwrap() error { return e.cause }

// Cause says why a connection ended.
type Cause string

const (
	ClosedByHost      Cause = "ClosedByHost"      // Close was called
	ClosedByConnector Cause = "ClosedByConnector" // the connector said goodbye
	ConnectionLost    Cause = "ConnectionLost"    // the transport failed
	MessageTooBig     Cause = "MessageTooBig"     // a message over the transport's limit
	HeldOverflow      Cause = "HeldOverflow"      // too much arrived before Release
	WriteTimedOut     Cause = "WriteTimedOut"     // the connector stopped reading
	PingTimedOut      Cause = "PingTimedOut"      // the connector stopped answering pings
	HandlerPanicked   Cause = "HandlerPanicked"   // a fault of the host
)

// ConnError says why a connection ended.
type ConnError struct {
	Cause Cause
	// Code is the connector's close code; 0 unless Cause is ClosedByConnector.
	Code int
	// Reason is the text given to Close, or the connector's (sanitised).
	Reason string
	// Panic and Stack are set for HandlerPanicked. They are no part of Error,
	// because a panic's value may hold anything.
	Panic any
	Stack []byte
}

// Error implements error. The text is the same for the same failure.
func (e *ConnError) Error() string {
	switch e.Cause {
	case ClosedByHost:
		return "connection closed: " + e.Reason
	case ClosedByConnector:
		return "connection " + (&PeerClosedError{Code: e.Code, Reason: e.Reason}).Error()
	case MessageTooBig:
		return "connection closed: message over the size limit"
	case HeldOverflow:
		return "connection closed: too many messages before the policy was settled"
	case WriteTimedOut:
		return "connection closed: the connector stopped reading"
	case PingTimedOut:
		return "connection closed: the connector stopped answering pings"
	case HandlerPanicked:
		return "connection closed: internal error"
	default:
		return "connection lost"
	}
}

// farewell is the reason given to the peer. It says no more than Error does.
func (e *ConnError) farewell() string {
	switch e.Cause {
	case ClosedByHost:
		return e.Reason
	case MessageTooBig:
		return "message over the size limit"
	case HeldOverflow:
		return "too many messages before the policy was settled"
	case HandlerPanicked:
		return "internal error"
	default:
		return ""
	}
}

// isMoreSpecific reports whether e explains an end that was first seen as a bare
// loss: the writer and the pinger can meet a dead socket before the reader has
// told why it died.
func (e *ConnError) isMoreSpecific(than *ConnError) bool {
	return than.Cause == ConnectionLost && (e.Cause == ClosedByConnector || e.Cause == MessageTooBig)
}
