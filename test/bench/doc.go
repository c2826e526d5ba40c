// Package bench measures what the operator costs: the writes and reconciliations that a channel
// takes, the time beside that of the same API server's bare writes, and the memory a channel needs.
//
// The manager runs in this process against a real control plane and test connectors, so that its
// requests are counted as they leave (Tally) and its reconciliations as controller-runtime counts
// them. Counts are the operator's own and are asserted by this package's tests. Times depend on the
// machine, are only ever compared within one run, and are printed by cmd/bench (`make bench`).
//
//   - what is counted: Tally, Sample
//   - what is measured: Lab (the control plane), Fleet (connectors, their channels and a manager)
//   - what it is compared with: Bare, the same API server written to by plain clients
//   - what the goals are: cmd/bench
package bench
