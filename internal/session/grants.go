package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/mcpl"
)

// fetchEvery is how often a connection's manifest is fetched at the most, however often it is said
// to have changed (semantics §12.7).
const fetchEvery = 5 * time.Second

// manifests fetches the manifest whenever the connector says that it changed, until the connection
// ends. What is said during a fetch, or too soon after it, makes one further fetch.
func (s *Session) manifests(conn *mcpl.Conn, changed <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		select {
		case <-conn.Done():
			return
		case <-changed:
		}
		s.fetchManifest(ctx, conn)
		timer := s.clock.NewTimer(fetchEvery)
		select {
		case <-conn.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// fetchManifest fetches the manifest and negotiates the grant anew. A fetch that fails changes nothing.
func (s *Session) fetchManifest(ctx context.Context, conn *mcpl.Conn) {
	result, err := mcpl.FetchManifest(conn).Wait(ctx)
	if err != nil {
		return
	}
	manifest, err := mcpl.ParseManifest(result)
	if err != nil {
		return
	}
	s.mu.Lock()
	advertised := mcpl.Advertised(manifest, s.peer.Tools)
	next := mcpl.ComputeGrant(advertised, s.config.Deny)
	same := s.conn != conn || slices.Equal(next.Paths(), s.grant.Paths())
	if s.conn == conn {
		s.peer.Manifest = digest(manifest)
	}
	s.mu.Unlock()
	if !same {
		s.renegotiate(ctx, conn, next, mcpl.DeniedPaths(advertised, next))
	}
	s.wakeConnector()
}

// renegotiate moves the grant of a live connection: what is taken away is gone before the connector
// is told, what is added is there once it has accepted it.
func (s *Session) renegotiate(ctx context.Context, conn *mcpl.Conn, next mcpl.Grant, denied []string) {
	if !s.move(conn, func(now mcpl.Grant) mcpl.Grant { return intersection(now, next) }, "") {
		return
	}
	receipt, err := mcpl.NegotiatePolicy(ctx, conn, next, denied)
	var answered *mcpl.CallError
	switch {
	case err == nil && receipt.Accepted:
		negotiated := v1.ReasonGranted
		if len(receipt.UnavailableFeatures) > 0 || receipt.Mode == mcpl.ModeDegraded {
			negotiated = v1.ReasonDegraded
		}
		s.move(conn, func(mcpl.Grant) mcpl.Grant { return next }, negotiated, receipt.UnavailableFeatures...)
	case err == nil && receipt.Fallback == mcpl.FallbackClose:
		conn.Close("the connector refused the grant")
	case err == nil, errors.As(err, &answered) && answered.Outcome == mcpl.ErrorResponse, errors.Is(err, mcpl.ErrMalformedAnswer):
		s.move(conn, func(mcpl.Grant) mcpl.Grant { return mcpl.Grant{} }, v1.ReasonRefusedMCPOnly)
	}
	// Without an answer what was taken away stays so, and nothing is added.
}

// move changes the grant of a connection that is still the established one, and has everybody look
// at their channels whom that concerns. It reports whether the connection still is.
func (s *Session) move(conn *mcpl.Conn, change func(mcpl.Grant) mcpl.Grant, negotiated string, unavailable ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != conn {
		return false
	}
	had := s.grant.Allows(mcpl.CapChannelsLifecycle)
	s.grant = change(s.grant)
	s.peer.Capabilities = s.grant.Paths()
	if negotiated != "" {
		s.peer.Negotiated, s.peer.Unavailable = negotiated, unavailable
	}
	switch has := s.grant.Allows(mcpl.CapChannelsLifecycle); {
	case has && !had:
		s.readmit() // at once, and without a new registration (semantics §5.4)
	case had && !has:
		for _, id := range s.order {
			s.notify.Channel(s.key(id))
		}
	}
	s.wakeConnector()
	return true
}

// intersection is what both grants allow.
func intersection(a, b mcpl.Grant) mcpl.Grant {
	return mcpl.NewGrant(slices.DeleteFunc(a.Paths(), func(path string) bool { return !b.Allows(path) })...)
}

// digest is a manifest's digest, empty for one that has none.
func digest(manifest json.RawMessage) string {
	d, err := mcpl.Digest(manifest)
	if err != nil {
		return ""
	}
	return d
}
