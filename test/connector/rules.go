package connector

import "slices"

// rules are what is given with Once, in order, and with Always. Connector.mu
// guards them.
type rules struct {
	once   []Rule
	always []Rule
}

// take returns the rule for a request, and spends it.
func (rs *rules) take(method, channelID string, history bool) Rule {
	for i, r := range rs.once {
		if r.fits(method, channelID, history) {
			rs.once = slices.Delete(rs.once, i, i+1)
			return r
		}
	}
	var best Rule
	closest := -1
	for _, r := range rs.always {
		if closeness := r.closeness(); r.fits(method, channelID, history) && closeness > closest {
			best, closest = r, closeness
		}
	}
	return best
}

func (r Rule) fits(method, channelID string, history bool) bool {
	if r.Method == "" && isHandshake(method) || r.WithHistory && !history {
		return false
	}
	return (r.Method == "" || r.Method == method) && (r.ChannelID == "" || r.ChannelID == channelID)
}

// closeness orders the standing rules that fit a request.
func (r Rule) closeness() int {
	n := 0
	if r.Method != "" {
		n += 4
	}
	if r.ChannelID != "" {
		n += 2
	}
	if r.WithHistory {
		n++
	}
	return n
}

func isHandshake(method string) bool {
	return method == "initialize" || method == "featureSets/update"
}

// Once gives rules for one request each.
func (c *Connector) Once(rs ...Rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules.once = append(c.rules.once, rs...)
}

// Always gives standing rules. One for the same method, channel and WithHistory
// replaces the former.
func (c *Connector) Always(rs ...Rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range rs {
		c.rules.always = slices.DeleteFunc(c.rules.always, func(old Rule) bool {
			return old.Method == r.Method && old.ChannelID == r.ChannelID && old.WithHistory == r.WithHistory
		})
		c.rules.always = append(c.rules.always, r)
	}
}

// ClearRules takes all rules away. Requests that wait at a gate stay there.
func (c *Connector) ClearRules() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = rules{}
}

// UnusedRules are the rules given with Once that no request has taken yet.
func (c *Connector) UnusedRules() []Rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.rules.once)
}
