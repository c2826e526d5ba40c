package decision

import "time"

// minimumKept is how long every answer stays readable.
const minimumKept = 5 * time.Minute

// Keep is how much longer a finished decision with a generated name is kept, 0 or less where it
// is to go: after its time, or beyond the newest limit of its channel (rank counts from 0, the
// newest), and never before everybody had a chance to read the answer.
func Keep(finishedFor, ttl time.Duration, rank, limit int) time.Duration {
	kept := ttl
	if rank >= limit {
		kept = 0
	}
	return max(kept, minimumKept) - finishedFor
}
