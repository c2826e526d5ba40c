// Package controllers holds the reconcilers, one kind a file: they gather what is known, ask
// internal/decision what follows, carry that out and report it.
//
// A channel has one owner, the ChannelReconciler, whose key is the pair of serverID and channelID:
// it alone writes the channel's ChannelRecord, the status of its Channel and the answers of its
// ChannelDecisions. No reconciler dials, sleeps or waits for a connector.
package controllers
