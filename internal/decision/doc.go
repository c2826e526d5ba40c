// Package decision holds the rules: which decisions may be made of a channel, what they write over
// what, what an operation's end means for whoever asked, and what a person is told.
//
// Every rule is a pure function over plain values: no clock, no client, no lock, no goroutine.
// Whoever calls it gathers the facts, and carries out what it says. The words are those of
// api/v1alpha1; the rules are those of docs/semantics.md.
package decision
