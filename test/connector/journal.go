package connector

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// journal keeps the last entries, and counts all.
type journal struct {
	keep     int // entries; none if negative
	maxBytes int
	now      func() time.Time
	bell     *bell

	mu      sync.Mutex
	seq     int64
	entries []Entry
	dropped int64
	counts  map[countKey]*Count
}

// Count is how often a method was used for a channel ("" where it is about none).
type Count struct {
	// Direction is who asked.
	Direction     Direction `json:"direction"`
	Method        string    `json:"method"`
	ChannelID     string    `json:"channelId,omitempty"`
	Requests      int       `json:"requests"`
	Notifications int       `json:"notifications"`
	// Results and Errors are the answers to these requests.
	Results int `json:"results"`
	Errors  int `json:"errors"`
}

type countKey struct {
	direction         Direction
	method, channelID string
}

func newJournal(o Options, b *bell) *journal {
	return &journal{
		keep:     o.JournalKeep,
		maxBytes: o.JournalBytes,
		now:      o.Now,
		bell:     b,
		counts:   make(map[countKey]*Count),
	}
}

// record appends an entry and wakes those who wait.
func (j *journal) record(e Entry) {
	e.Bytes = max(len(e.Params), len(e.Result))
	if e.Bytes > j.maxBytes {
		e.Params, e.Result, e.Truncated = nil, nil, true
	}
	j.mu.Lock()
	j.seq++
	e.Seq, e.Time = j.seq, j.now()
	j.count(e)
	if j.keep >= 0 {
		j.entries = append(j.entries, e)
	}
	// Cutting a quarter at a time keeps the cost of an append constant.
	if over := len(j.entries) - j.keep; j.keep >= 0 && over > j.keep/4 {
		j.entries = slices.Clone(j.entries[over:])
		j.dropped += int64(over)
	}
	j.mu.Unlock()
	j.bell.ring()
}

// count adds an entry to its count. j.mu is held.
func (j *journal) count(e Entry) {
	k := countKey{direction: e.Direction, method: e.Method, channelID: e.ChannelID}
	switch {
	case e.Method == "":
		return
	case e.Kind == Response && e.Direction == In:
		k.direction = Out
	case e.Kind == Response:
		k.direction = In
	}
	n := j.counts[k]
	if n == nil {
		n = &Count{Direction: k.direction, Method: k.method, ChannelID: k.channelID}
		j.counts[k] = n
	}
	switch {
	case e.Kind == Request:
		n.Requests++
	case e.Kind == Notification:
		n.Notifications++
	case e.Error != nil:
		n.Errors++
	default:
		n.Results++
	}
}

func (j *journal) selected(f Filter) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []Entry
	for _, e := range j.entries {
		if f.matches(e) {
			out = append(out, e)
		}
	}
	return out
}

// since returns the entries after seq.
func (j *journal) since(seq int64) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	from, _ := slices.BinarySearchFunc(j.entries, seq+1, func(e Entry, seq int64) int {
		return cmp.Compare(e.Seq, seq)
	})
	return slices.Clone(j.entries[from:])
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries, j.dropped = nil, 0
	clear(j.counts)
}

// Entries returns what the journal keeps of the selected entries, oldest first.
func (c *Connector) Entries(f Filter) []Entry {
	return c.journal.selected(f)
}

// Requests returns the host's requests of a method (any if "") for a channel (any
// if ""), oldest first, in the order in which they arrived.
func (c *Connector) Requests(method, channelID string) []Entry {
	return c.journal.selected(Asked(method, channelID))
}

// DroppedEntries is how many entries the journal gave up for newer ones.
func (c *Connector) DroppedEntries() int64 {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	return c.journal.dropped
}

// Counts returns all counts, sorted by direction, method and channel. They are
// kept in every mode of the journal.
func (c *Connector) Counts() []Count {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	out := make([]Count, 0, len(c.journal.counts))
	for _, key := range slices.SortedFunc(maps.Keys(c.journal.counts), countKey.compare) {
		out = append(out, *c.journal.counts[key])
	}
	return out
}

func (k countKey) compare(o countKey) int {
	return cmp.Or(
		cmp.Compare(k.direction, o.direction),
		cmp.Compare(k.method, o.method),
		cmp.Compare(k.channelID, o.channelID),
	)
}

// Count is how many requests of a method the host made for a channel, or for all
// if it is "".
func (c *Connector) Count(method, channelID string) int {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	if channelID != "" {
		if n := c.journal.counts[countKey{direction: In, method: method, channelID: channelID}]; n != nil {
			return n.Requests
		}
		return 0
	}
	total := 0
	for key, n := range c.journal.counts {
		if key.direction == In && key.method == method {
			total += n.Requests
		}
	}
	return total
}

// Reset forgets the journal and the counts. Channels, rules and connections stay.
func (c *Connector) Reset() {
	c.journal.reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = nil
}
