package decision

import (
	"testing"
	"time"
)

func TestKeep(t *testing.T) {
	const day = 24 * time.Hour
	cases := map[string]struct {
		finished, ttl time.Duration
		rank, limit   int
		want          time.Duration
	}{
		"just finished":                          {ttl: day, limit: 10, want: day},
		"half its time":                          {finished: 12 * time.Hour, ttl: day, limit: 10, want: 12 * time.Hour},
		"its time is over, to the second":        {finished: day, ttl: day, limit: 10, want: 0},
		"long over":                              {finished: 2 * day, ttl: day, limit: 10, want: -day},
		"a time of less than five minutes":       {ttl: time.Second, limit: 10, want: 5 * time.Minute},
		"no time at all":                         {finished: time.Minute, limit: 10, want: 4 * time.Minute},
		"the last within the limit":              {ttl: day, rank: 9, limit: 10, want: day},
		"the first beyond the limit":             {ttl: day, rank: 10, limit: 10, want: 5 * time.Minute},
		"beyond the limit, five minutes on":      {finished: 5 * time.Minute, ttl: day, rank: 10, limit: 10, want: 0},
		"limit 0 keeps five minutes":             {finished: time.Minute, ttl: day, want: 4 * time.Minute},
		"beyond the limit, and its time is over": {finished: 2 * day, ttl: day, rank: 11, limit: 10, want: 5*time.Minute - 2*day},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.want, Keep(tc.finished, tc.ttl, tc.rank, tc.limit))
		})
	}
}
