// Package connector is a programmable MCPL server: the independent peer against
// which the operator is tested and demonstrated. It speaks MCPL over a WebSocket
// at /mcpl in the dialects 0.4 and 0.5, keeps a set of channels and of what is
// really open, records everything it is asked, and misbehaves on request in every
// way real connectors have been seen to (docs/semantics §13).
//
//	c, err := connector.Start(ctx, connector.Options{
//		Channels: connector.Generate("demo", 3),
//	})
//	defer c.Close()
//	…let a host dial c.URL()…
//	c.WaitRegistered(ctx)
//	c.Once(connector.On("channels/open", "demo:c1").Failing(-32000, "no such place"))
//	_, err = c.Wait(ctx, connector.Filter{Method: "channels/open", ChannelID: "demo:c1"}, 1)
//	open := c.IsOpen("demo:c1")
//
// Where to look:
//
//   - what it serves and says of itself: Options, Descriptor, Manifest, Behavior
//   - how it answers a request: Rule, made with On, given with Once and Always
//   - what it says unasked: Add, Remove, Update, Announce, Say, Call, SendRaw …
//   - how it fails: Drop, Restart, Pause, Freeze, and Behavior
//   - what it saw: Entries, Wait, WaitFor, WaitUntil, Counts, Violations
//
// It works through requests strictly one after another, as real connectors do;
// only a rule that says so (Beside) lets one wait aside. The same operations are
// served over HTTP (Options.Control) and called with Control.
//
// It never imports the operator's own wire code: a mistake made there must not be
// repeated here. What never lives here: assertions about the operator.
package connector
