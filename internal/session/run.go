package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/mcpl"
)

// Timing are the waits of a session that tests shorten.
type Timing struct {
	// RedialBase and RedialMax bound the wait between dials: it doubles from one to the other, give
	// or take a quarter, and starts over after a handshake (semantics §12.6).
	RedialBase, RedialMax time.Duration
}

// DefaultTiming waits 5 s, then twice as long each time, up to 300 s.
func DefaultTiming() Timing {
	return Timing{RedialBase: 5 * time.Second, RedialMax: 300 * time.Second}
}

// dialTimeout bounds a dial, the opening of the WebSocket included.
const dialTimeout = 15 * time.Second

// run dials and serves until ctx ends. It is the session's only goroutine besides those of a connection.
func (s *Session) run(ctx context.Context) {
	defer close(s.stopped)
	defer s.calls.Wait()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = s.timing.RedialBase, s.timing.RedialMax
	wait.Multiplier, wait.RandomizationFactor = 2, 0.25
	for ctx.Err() == nil {
		config := s.configuration()
		if config.Target.None() {
			s.idle(ctx)
			continue
		}
		established, err := s.serve(ctx, config)
		if established {
			wait.Reset()
		}
		s.failed(err)
		if errors.Is(err, errReconfigured) || (refusedToken(err) && s.dialer.Renewed(ctx, config.Target)) {
			continue // a new target or token has nothing to do with the old one's failures
		}
		if s.pause(ctx, wait.NextBackOff()) {
			wait.Reset()
		}
	}
}

func (s *Session) configuration() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

// idle waits until the configuration changes.
func (s *Session) idle(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.kick:
	}
}

// pause waits before the next dial. A new configuration ends it, which is reported.
func (s *Session) pause(ctx context.Context, d time.Duration) (reconfigured bool) {
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.kick:
		return true
	case <-timer.C():
	}
	return false
}

// errReconfigured ends a connection whose configuration has changed.
var errReconfigured = errors.New("the connector's configuration changed")

// serve dials once and serves until the connection ends. It reports whether the handshake succeeded.
func (s *Session) serve(ctx context.Context, config Config) (bool, error) {
	dialCtx, cancel := context.WithTimeout(ctx, dialTimeout)
	transport, err := s.dialer.Dial(dialCtx, config.Target)
	cancel()
	if err != nil {
		return false, err
	}
	conn := mcpl.NewConn(transport, s, mcpl.Options{Clock: s.clock, OnClosing: func(*mcpl.ConnError) { s.lost() }})
	defer func() {
		conn.Close("the host is done")
		<-conn.Done()
	}()
	peer, grant, err := s.negotiate(ctx, conn, config.Deny)
	if err != nil {
		return false, err
	}
	changed := s.establish(conn, peer, grant)
	if changed == nil {
		<-conn.Done()
		return true, &Failure{Reason: v1.ReasonConnectionLost, Err: conn.Err()}
	}
	s.calls.Go(func() { s.manifests(conn, changed) })
	conn.Release()
	for {
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-conn.Done():
			return true, &Failure{Reason: v1.ReasonConnectionLost, Err: conn.Err()}
		case <-s.kick:
			if s.outdated(config) {
				return true, errReconfigured
			}
		}
	}
}

// outdated reports whether what a connection was made with is no longer what is wanted. A pod that
// merely stopped being ready keeps its connection, so having no target is no change.
func (s *Session) outdated(made Config) bool {
	now := s.configuration()
	return !slices.Equal(now.Deny, made.Deny) || (!now.Target.None() && now.Target != made.Target)
}

// negotiate makes the handshake (semantics §12.2).
func (s *Session) negotiate(ctx context.Context, conn *mcpl.Conn, deny []string) (Peer, mcpl.Grant, error) {
	hello, err := mcpl.Initialize(ctx, conn, mcpl.Implementation{Name: "mcpl-operator", Version: s.version})
	if err != nil {
		return Peer{}, mcpl.Grant{}, &Failure{Reason: v1.ReasonHandshakeFailed, Err: err}
	}
	if !hello.IsMCPL {
		return Peer{}, mcpl.Grant{}, &Failure{Reason: v1.ReasonNotMCPL, Err: errors.New("it answers as a plain MCP server, without channels")}
	}
	peer := Peer{
		Name:       hello.ServerInfo.Name,
		Version:    hello.ServerInfo.Version,
		Negotiated: v1.ReasonGranted,
		Manifest:   digest(hello.Manifest),
		Tools:      hello.Tools,
	}
	grant := mcpl.ComputeGrant(hello.Advertised, deny)
	receipt, err := mcpl.NegotiatePolicy(ctx, conn, grant, mcpl.DeniedPaths(hello.Advertised, grant))
	var answered *mcpl.CallError
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		peer.Negotiated, grant = v1.ReasonPolicyTimeout, mcpl.Grant{}
	case errors.As(err, &answered) && answered.Outcome == mcpl.ErrorResponse, errors.Is(err, mcpl.ErrMalformedAnswer):
		peer.Negotiated, grant = v1.ReasonRefusedMCPOnly, mcpl.Grant{}
	case err != nil:
		return Peer{}, mcpl.Grant{}, &Failure{Reason: v1.ReasonHandshakeFailed, Err: err}
	case !receipt.Accepted && receipt.Fallback == mcpl.FallbackClose:
		return Peer{}, mcpl.Grant{}, &Failure{Reason: v1.ReasonHandshakeFailed, Negotiated: v1.ReasonRefusedClose,
			Err: errors.New("it refused the grant and wants no connection")}
	case !receipt.Accepted:
		peer.Negotiated, grant = v1.ReasonRefusedMCPOnly, mcpl.Grant{}
	case len(receipt.UnavailableFeatures) > 0 || receipt.Mode == mcpl.ModeDegraded:
		peer.Negotiated, peer.Unavailable = v1.ReasonDegraded, receipt.UnavailableFeatures
	}
	peer.Capabilities = grant.Paths()
	return peer, grant, nil
}

// establish makes a negotiated connection the one that everything goes over, and returns what tells
// that the connector's manifest has changed: nil where the connection has ended meanwhile. lost is
// called once, and before this there is nothing to lose.
func (s *Session) establish(conn *mcpl.Conn, peer Peer, grant mcpl.Grant) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if conn.Err() != nil {
		return nil
	}
	s.conn, s.peer, s.grant = conn, peer, grant
	s.manifestChanged = make(chan struct{}, 1)
	s.connection++
	s.state, s.trouble, s.upSince = v1.ConnectorUp, Trouble{}, s.clock.Now()
	s.wakeConnector()
	for _, id := range s.order {
		s.notify.Channel(s.key(id))
	}
	return s.manifestChanged
}

// lost empties the grant and confirms nothing any more. The connection calls it before it rejects
// the requests that wait for an answer, so that whatever they cause is judged without a grant.
func (s *Session) lost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return // it ended before the handshake did
	}
	s.conn, s.grant, s.listing, s.removed = nil, mcpl.Grant{}, notListing, nil
	s.state, s.disturbedAt = v1.ConnectorReconnecting, s.clock.Now()
	for _, id := range s.order {
		e := s.entries[id]
		e.confirm(v1.TransportUnconfirmed)
		e.entering = false
		s.drop(e)
		s.notify.Channel(s.key(id))
	}
	s.window.drain()
	s.wakeConnector()
}

// failed notes why there is no connection.
func (s *Session) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = troubleOf(err)
	var f *Failure
	if errors.As(err, &f) && f.Negotiated != "" {
		s.peer.Negotiated = f.Negotiated
	}
	s.wakeConnector()
}
