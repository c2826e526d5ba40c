package mcpl

// ping is the pinger: it ends a connection whose peer no longer answers, which a
// half-open TCP connection would not show by itself.
func (c *Conn) ping() {
	ticker := c.o.Clock.NewTicker(c.o.PingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-c.closingC:
			return
		case <-ticker.C():
		}
		if !c.pingOnce() {
			return
		}
	}
}

// pingOnce reports whether the connection lives.
func (c *Conn) pingOnce() bool {
	pauses, paused := c.readerPauses()
	if paused {
		return true
	}
	ctx, timedOut, stop := c.withTimeout(c.o.PingTimeout, PingTimedOut)
	defer stop()
	err := c.t.Ping(ctx)
	if err == nil {
		return true
	}
	// The answer is seen by the reader. If it stood still meanwhile, for a busy
	// handler, the silence says nothing about the peer.
	late := timedOut()
	if now, _ := c.readerPauses(); late && now != pauses {
		return true
	}
	cause := ConnectionLost
	if late {
		cause = PingTimedOut
	}
	c.fail(&ConnError{Cause: cause})
	return false
}

func (c *Conn) readerPauses() (count int, paused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in.pauses, c.in.paused
}
