// Package session owns the live connections to connectors, one session for each.
//
// A session dials in the background, negotiates, keeps what the connector registers, and carries
// out opens and closes through a queue for each channel and one window for the connector. It never
// decides anything: what is decided it asks of the ledger at the moment it sends, and what it
// learns it lays down for the channel's owner, whom it wakes. Nobody who asks a session for
// something waits: the answer is what is known now, and the owner is woken when that changes.
package session
