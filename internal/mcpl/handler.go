package mcpl

import (
	"context"
	"encoding/json"
)

// Handler serves what the connector sends. Its methods are called one at a
// time, in the order of arrival, after Release. ctx ends with the connection.
//
// A handler must not wait for an answer of the connector: under back-pressure
// nothing is read until the handler returns. What needs one belongs in Answer.Then
// or in a goroutine.
type Handler interface {
	ServeRequest(ctx context.Context, method string, params json.RawMessage) Answer
	ServeNotification(ctx context.Context, method string, params json.RawMessage)
}

// Answer is the host's answer to a request of the connector.
type Answer struct {
	// Result is the result, marshalled to JSON; nil is sent as {}. Not used
	// when Err is set.
	Result any
	// Err makes it an error answer.
	Err *Error
	// Then, if set, runs after the answer is queued to the writer and before
	// the next inbound message is dispatched. What it starts is therefore
	// written after the answer: a connector blocked in its own request cannot
	// serve open or close (semantics §12.4, "answer before reconciling"). It
	// runs even when the connection ended meanwhile.
	Then func()
}

// Error is an error answer to the connector.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// NotPermitted is the answer to a method whose capability is not granted
// (semantics §12.5).
func NotPermitted(capability string) *Error {
	return &Error{
		Code:    CodeNotPermitted,
		Message: "capability not granted: " + capability,
		Data:    map[string]string{"capability": capability},
	}
}

// MethodNotFound is the answer to a method the host does not serve
// (semantics §12.5).
func MethodNotFound() *Error {
	return &Error{Code: CodeMethodNotFound, Message: "method not served"}
}

// InvalidParams is the answer to params of the wrong shape (semantics §12.5).
func InvalidParams() *Error {
	return &Error{Code: CodeInvalidParams, Message: "malformed params"}
}

// DecodeParams reads the params of an inbound message. Absent params and
// null read as {}. The error is ready to be sent.
func DecodeParams[T any](params json.RawMessage) (T, *Error) {
	var v T
	if isNull(params) {
		return v, nil
	}
	if !isObject(params) || json.Unmarshal(params, &v) != nil {
		var zero T
		return zero, InvalidParams()
	}
	return v, nil
}
