// Package ledger is the log of decisions: what is in force for every channel, in memory, and the
// appends that alone may change it.
//
// The memory is read by everybody who needs to know what is decided (the queue at the moment it
// sends, listings, speech); it changes only by an append that the API server accepted. The rules
// that say whether a record may be appended are in internal/decision, in front of this package.
package ledger
