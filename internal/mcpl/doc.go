// Package mcpl is the wire between the host (this operator) and a connector:
// the transport of a connection, JSON-RPC in both directions, the handshake,
// grants, and the shapes of the channel methods (semantics §12 and §13).
//
// A connection is made in this order:
//
//	t, err := mcpl.DialWebSocket(ctx, …)           // or DialTCP: frames
//	c := mcpl.NewConn(t, handler, mcpl.Options{})  // inbound messages are held
//	res, err := mcpl.Initialize(ctx, c, client)
//	grant := mcpl.ComputeGrant(res.Advertised, deny)
//	receipt, err := mcpl.NegotiatePolicy(ctx, c, grant, mcpl.DeniedPaths(res.Advertised, grant))
//	…activate the grant…
//	c.Release()                                    // held messages are dispatched
//
// A Conn runs one reader, one writer, one dispatcher and one pinger. It says of
// every failed request whether it may have reached the connector, starts a
// request's deadline when the request has been written, bounds what a peer can
// make it keep, and skips what a peer should not have sent.
//
// A manifest is fetched later with FetchManifest; Digest tells one from another.
//
// What never lives here: decisions, channels and their queues, the window of
// requests in flight, reconnecting, and who may do what beyond the grant.
// Nothing in this package logs, and none of its errors holds a token, a URL's
// query or the text of a message.
package mcpl
