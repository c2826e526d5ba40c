package connector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"
)

// controlServer serves the control API: POST /<operation> with its arguments as a
// JSON object (or none), answered with its result as JSON. GET / names them all.
type controlServer struct {
	addr   string
	server *http.Server
}

func (c *Connector) serveControl(ctx context.Context, address string) (*controlServer, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve the control API: %w", err)
	}
	operations := c.operations()
	mux := http.NewServeMux()
	for name, serve := range operations {
		mux.HandleFunc("POST /"+name, serve)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, slices.Sorted(maps.Keys(operations)))
	})
	s := &controlServer{addr: l.Addr().String(), server: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: time.Minute,
		BaseContext:       func(net.Listener) context.Context { return c.life },
		ErrorLog:          log.New(io.Discard, "", 0),
	}}
	c.wg.Go(func() { _ = s.server.Serve(l) }) // it ends with Close
	return s, nil
}

// none stands for no arguments and for no result.
type none struct{}

// operation serves f.
func operation[In, Out any](f func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
			writeJSON(w, http.StatusBadRequest, failure{Message: "send the arguments as a JSON object: " + err.Error()})
			return
		}
		out, err := f(r.Context(), in)
		if err != nil {
			status, body := failureOf(err)
			writeJSON(w, status, body)
			return
		}
		writeJSON(w, http.StatusOK, out)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// failure is the body of an answer that is not 200.
type failure struct {
	Message string `json:"message"`
	// Kind names one of the package's errors.
	Kind string `json:"kind,omitempty"`
	// RPC is an error the host answered.
	RPC *RPCError `json:"rpc,omitempty"`
}

var failureKinds = map[string]error{
	"notConnected": ErrNotConnected,
	"disconnected": ErrDisconnected,
	"countsOnly":   ErrCountsOnly,
	"closed":       ErrClosed,
}

func failureOf(err error) (int, failure) {
	var rpc *RPCError
	if errors.As(err, &rpc) {
		return http.StatusBadGateway, failure{Message: err.Error(), RPC: rpc}
	}
	for kind, sentinel := range failureKinds {
		if errors.Is(err, sentinel) {
			return http.StatusConflict, failure{Message: err.Error(), Kind: kind}
		}
	}
	return http.StatusInternalServerError, failure{Message: err.Error()}
}

// error is the failure as the error it was made from.
func (f failure) error() error {
	if f.RPC != nil {
		return f.RPC
	}
	if sentinel := failureKinds[f.Kind]; sentinel != nil {
		return &controlError{text: f.Message, kind: sentinel}
	}
	return errors.New(f.Message)
}

type controlError struct {
	text string
	kind error
}

func (e *controlError) Error() string { return e.text }
func (e *controlError) Unwrap() error { return e.kind }
