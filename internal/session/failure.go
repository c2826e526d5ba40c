package session

import (
	"errors"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// Failure is why a connection was not made, or ended.
type Failure struct {
	Reason     string // a reason of the condition Connected
	Negotiated string // a reason of the condition Negotiated, where it says more
	Err        error  // its text is stable, and holds no token and no query
}

func (f *Failure) Error() string { return f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }

// troubleOf says why there is no connection, for a status.
func troubleOf(err error) Trouble {
	var f *Failure
	if errors.As(err, &f) {
		return Trouble{Reason: f.Reason, Message: f.Error()}
	}
	return Trouble{Reason: v1.ReasonConnecting, Message: "it is dialled again at once"}
}

func refusedToken(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.Reason == v1.ReasonTokenRefused
}
