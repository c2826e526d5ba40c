package mcpl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
)

// DialClass says what became of a dial.
type DialClass string

const (
	Unreachable  DialClass = "Unreachable"  // no connection, or it ended without an answer
	TLSFailed    DialClass = "TLS"          // the TLS handshake failed
	TokenRefused DialClass = "TokenRefused" // HTTP 401 or 403
	OtherHost    DialClass = "OtherHost"    // HTTP 409: another host holds the connector
	NotMCPL      DialClass = "NotMCPL"      // something else answers there
	DialTimeout  DialClass = "Timeout"      // the caller's deadline passed
)

// DialError is the error of DialWebSocket and DialTCP.
type DialError struct {
	Class DialClass
	// Status is the HTTP status of the answer; 0 if there was none.
	Status int
	// Holder and Term are set for OtherHost: who holds the connector, and its
	// term "<unix seconds>.<transitions>" (sanitised, at most 256 and 64 bytes).
	Holder string
	Term   string
	// Detail is a short fixed text, such as "connection refused".
	Detail string

	cause error
}

// Error implements error. The text is the same for the same failure and holds
// nothing of the URL: no query, no token, no address or port.
func (e *DialError) Error() string {
	switch e.Class {
	case TokenRefused:
		return fmt.Sprintf("the token was refused (HTTP %d)", e.Status)
	case OtherHost:
		return fmt.Sprintf("another host holds the connector: %s (term %s)", e.Holder, e.Term)
	case NotMCPL:
		if e.Status != 0 {
			return fmt.Sprintf("no WebSocket: %s (HTTP %d)", e.Detail, e.Status)
		}
		return "no WebSocket: " + e.Detail
	case TLSFailed:
		return "TLS: " + e.Detail
	case DialTimeout:
		return "timed out: " + e.Detail
	default:
		return "unreachable: " + e.Detail
	}
}

// Unwrap returns the error of the options' DialContext, if that is what failed.
// Errors of the HTTP client are left out: they print the URL.
func (e *DialError) Unwrap() error { return e.cause }

// statusError classifies an HTTP answer that is no upgrade.
func statusError(resp *http.Response) *DialError {
	e := &DialError{Class: NotMCPL, Status: resp.StatusCode, Detail: "something else answers"}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Class, e.Detail = TokenRefused, "token refused"
	case http.StatusConflict:
		var holder struct {
			Holder json.RawMessage `json:"holder"`
			Term   json.RawMessage `json:"term"`
		}
		body, _ := io.ReadAll(resp.Body) // the library keeps at most 1,024 bytes of it
		if json.Unmarshal(body, &holder) == nil && text(holder.Holder) != "" {
			e.Class, e.Detail = OtherHost, "held by another host"
			e.Holder = Sanitize(text(holder.Holder), 256)
			e.Term = Sanitize(scalar(holder.Term), 64)
		}
	case http.StatusSwitchingProtocols:
		e.Detail = "malformed upgrade"
	}
	return e
}

// failure classifies a dial that got no HTTP answer.
func (d *dialing) failure(ctx context.Context, err error) *DialError {
	d.mu.Lock()
	defer d.mu.Unlock()
	expired := errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case expired && d.connected:
		return &DialError{Class: DialTimeout, Detail: "no answer"}
	case expired:
		return &DialError{Class: DialTimeout, Detail: "no connection", cause: d.dialErr}
	case d.dialErr != nil:
		return &DialError{Class: Unreachable, Detail: dialDetail(d.dialErr), cause: d.dialErr}
	case d.tlsErr != nil:
		return &DialError{Class: TLSFailed, Detail: tlsDetail(d.tlsErr)}
	case isRemoteAlert(err):
		return &DialError{Class: TLSFailed, Detail: tlsDetail(err)}
	case d.answered.Load():
		return &DialError{Class: NotMCPL, Detail: "the answer is not HTTP"}
	default:
		return &DialError{Class: Unreachable, Detail: "closed without an answer"}
	}
}

func dialDetail(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return "name not found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	default:
		return "connection failed"
	}
}

// tlsDetail names the fault without what the standard texts add (times, names
// of the certificate).
func tlsDetail(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return "certificate of an unknown authority"
	case errors.As(err, &name):
		return "certificate for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "certificate expired or not yet valid"
	case errors.As(err, &invalid):
		return "certificate not valid"
	case errors.As(err, &record):
		return "the answer is not TLS"
	case isRemoteAlert(err):
		return "refused by the connector"
	default:
		return "handshake failed"
	}
}

// isRemoteAlert reports whether the peer broke the TLS connection off. In TLS
// 1.3 that is how a missing or unknown client certificate shows, and only at the
// first read.
func isRemoteAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
