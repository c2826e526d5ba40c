package session

import (
	"encoding/json"
	"fmt"
	"slices"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/mcpl"
)

// entry is a channel's registration: what the connector says of it now, and what is confirmed.
// Registering again makes a new entry.
type entry struct {
	id         uint64
	descriptor mcpl.Descriptor
	pushKnown  bool
	// connection that declared it last.
	connection int64
	// unserved says that no Channel object stands for it where only declared channels are served.
	unserved bool

	transport v1.TransportState
	// failure is how the last operation ended, if nothing has been confirmed since.
	failure       *decision.Outcome
	failedOpening bool
	// ticket is the entry's place in a registration that has not been recorded yet, and batch that
	// registration until all of it is, and its channels are applied.
	ticket *Ticket
	batch  *batch
	// entering says that its registration is being answered: its ticket comes with that.
	entering bool
}

// confirm notes what the transport is, or that nobody knows. Whatever failed before is past.
func (e *entry) confirm(t v1.TransportState) {
	e.transport, e.failure = t, nil
}

// batch is one registration: the channels that a connector named together. It waits until the
// decisions about all of them are recorded, then releases the one notice and applies them in the
// order in which they were listed (semantics §5.1).
type batch struct {
	session    *Session
	connection int64
	tickets    []*Ticket
	pending    int
	// onlyDue leaves out channels that already are what they should be: nothing was registered
	// anew, only the rules changed (semantics §5.4).
	onlyDue bool
}

// Ticket is a channel's place in a registration. Its owner settles it once, by Recorded or Released.
type Ticket struct {
	batch     *batch
	channelID string
	entry     uint64
	open      bool // not settled yet
	apply     bool
	// label is what the notice calls the channel, if the policy opened it now.
	label string
}

// Recorded says that what the registration makes of the channel is stored (or needed no storing),
// and whether an operation follows. notice names the channel in the one notice of the policy.
func (t *Ticket) Recorded(apply, notice bool) {
	s := t.batch.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if notice {
		t.label = s.label(t.channelID)
	}
	if !t.open {
		// The registration went on without the channel, but its record says that the notice is given.
		s.giveNotice([]*Ticket{t})
		return
	}
	t.apply = apply
	t.settle()
}

// Released takes the channel out of its registration: it could not be recorded now. The others must
// not wait for it, and its owner goes on with it alone.
func (t *Ticket) Released() {
	s := t.batch.session
	s.mu.Lock()
	defer s.mu.Unlock()
	t.settle()
}

// settle counts a ticket off; the last one lets the batch go. The session's lock is held.
func (t *Ticket) settle() {
	if !t.open {
		return
	}
	t.open = false
	s, b := t.batch.session, t.batch
	if e := s.entries[t.channelID]; e != nil && e.ticket == t {
		e.ticket = nil
	}
	if b.pending--; b.pending == 0 {
		b.release()
	}
}

// release gives the notice and has the channels applied, in listed order.
func (b *batch) release() {
	s := b.session
	for _, t := range b.tickets {
		if e := s.entries[t.channelID]; e != nil && e.batch == b {
			e.batch = nil
		}
	}
	s.giveNotice(b.tickets) // whatever has become of the connection: the records say that it is given
	if s.conn == nil || b.connection != s.connection {
		return // the connection that registered them is gone; the next one registers anew
	}
	if !s.grant.Allows(mcpl.CapChannelsLifecycle) {
		s.notify.Event(s.name(), EventReconcileSkipped, fmt.Sprintf(
			"%d channels are registered, but channels.lifecycle is not granted: nothing is opened or closed there", len(b.tickets)))
		return
	}
	for _, t := range b.tickets {
		e := s.entries[t.channelID]
		if !t.apply || e == nil || e.id != t.entry || (b.onlyDue && !s.due(t.channelID, e)) {
			continue
		}
		if s.queues[t.channelID].willSend() {
			continue // it means the same: a connector that registers faster than it answers piles nothing up
		}
		s.enqueue(t.channelID, catchUp, 0)
		s.wakeChannel(t.channelID)
	}
}

// giveNotice names the channels that the policy opened, as far as nobody has decided otherwise since.
func (s *Session) giveNotice(tickets []*Ticket) {
	var labels []string
	for _, t := range tickets {
		if t.label != "" && s.decisions.WantsOpen(s.key(t.channelID)) {
			labels = append(labels, t.label)
		}
	}
	if len(labels) > 0 {
		s.notify.PolicyNotice(s.name(), labels)
	}
}

// due reports whether a channel is not, or not certainly, what is decided.
func (s *Session) due(channelID string, e *entry) bool {
	want := v1.TransportClosed
	if s.decisions.WantsOpen(s.key(channelID)) {
		want = v1.TransportOpen
	}
	return e.transport != want || s.queues[channelID] != nil
}

// enter makes new entries for the descriptors, and returns their ids. s.mu is held.
func (s *Session) enter(descriptors []mcpl.Descriptor) []string {
	ids := make([]string, 0, len(descriptors))
	for _, d := range descriptors {
		old := s.entries[d.ID]
		if old == nil {
			s.order = append(s.order, d.ID)
		}
		e := s.newEntry(d)
		if old != nil {
			e.unserved = old.unserved
			s.drop(old)
		}
		e.entering = true
		s.entries[d.ID] = e
		ids = append(ids, d.ID)
	}
	s.makeRoom()
	return ids
}

// makeRoom gives channels up that are not declared, oldest first, while there are more than allowed.
func (s *Session) makeRoom() {
	for _, id := range slices.Clone(s.order) {
		if len(s.entries) <= s.config.MaxChannels {
			return
		}
		if !s.declared(s.entries[id]) {
			s.remove(id)
		}
	}
}

// declared reports whether the connector has declared a channel on the present connection. Those of
// an earlier one stay until it is known that it no longer has them.
func (s *Session) declared(e *entry) bool { return !e.pushKnown && e.connection == s.connection }

func (s *Session) newEntry(d mcpl.Descriptor) *entry {
	s.entryIDs++
	return &entry{id: s.entryIDs, descriptor: d, connection: s.connection, transport: v1.TransportUnconfirmed}
}

// admit opens a batch for registered channels and wakes their owners. s.mu is held.
func (s *Session) admit(ids []string, onlyDue bool) {
	b := &batch{session: s, connection: s.connection, onlyDue: onlyDue}
	for _, id := range ids {
		e := s.entries[id]
		if e.ticket != nil {
			e.ticket.settle()
		}
		t := &Ticket{batch: b, channelID: id, entry: e.id, open: true}
		e.ticket, e.batch, e.entering = t, b, false
		b.tickets = append(b.tickets, t)
	}
	b.pending = len(b.tickets)
	for _, id := range ids {
		s.wakeChannel(id)
	}
	s.wakeConnector()
}

// readmit judges all declared channels again: what admits them has changed. s.mu is held.
func (s *Session) readmit() {
	ids := slices.DeleteFunc(slices.Clone(s.order), func(id string) bool { return !s.declared(s.entries[id]) })
	if s.conn != nil && len(ids) > 0 {
		s.admit(ids, true)
	}
}

// remove takes a channel's registration away. What is queued for it settles when its turn comes.
func (s *Session) remove(id string) bool {
	if s.refused[id] {
		delete(s.refused, id)
		s.wakeConnector()
	}
	if s.removed != nil && len(s.removed) < maxRemembered {
		s.removed[id] = true
	}
	e := s.entries[id]
	if e == nil {
		return false
	}
	s.drop(e)
	delete(s.entries, id)
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == id })
	s.wakeChannel(id)
	return true
}

// drop gives up an entry's place in a registration.
func (s *Session) drop(e *entry) {
	if e.ticket != nil {
		e.ticket.settle()
	}
}

// update replaces what is known of a channel. Another target makes the transport unconfirmed;
// nothing is sent for it and nothing is lifted (semantics §5.2).
func (s *Session) update(d mcpl.Descriptor) bool {
	e := s.entries[d.ID]
	if e == nil {
		return false
	}
	if !e.descriptor.SameTarget(d) {
		e.confirm(v1.TransportUnconfirmed)
	}
	e.descriptor = d
	s.wakeChannel(d.ID)
	return true
}

// listing is how far the question for all channels has come.
type listing int

const (
	notListing listing = iota
	listWaits          // for its turn
	listAsked          // and not answered
	listAgain          // asked, and another registration came before the answer
)

// list asks for all channels after a registration: some, direct messages for one, may be named
// there alone (semantics §5.1 step 6). Channels of an earlier connection that are in neither are
// gone. One question is out at a time, so that it takes up one place in the window.
func (s *Session) list() {
	switch s.listing {
	case notListing:
		s.listing = listWaits
		s.window.add(catchUp, s.askList)
		s.window.pump()
	case listAsked:
		s.listing = listAgain
	}
}

// askList is the job that sends the question.
func (s *Session) askList() bool {
	if s.conn == nil {
		return false
	}
	connection := s.connection
	call := s.conn.Start(mcpl.MethodChannelsList, struct{}{}, s.timeout())
	s.listing, s.removed = listAsked, map[string]bool{}
	s.calls.Go(func() {
		<-call.Done()
		result, err := call.Result()
		s.mu.Lock()
		defer s.mu.Unlock()
		if connection != s.connection || s.conn == nil {
			return // a list of a connection that is gone says nothing
		}
		s.window.inFlight--
		once := s.listing == listAsked
		s.listing = notListing
		var answer mcpl.ListResult
		if err == nil && json.Unmarshal(result, &answer) == nil {
			s.listed(answer.Channels)
		}
		s.removed = nil
		if !once {
			s.list()
		}
		s.window.pump()
	})
	return true
}

// listed takes in what channels/list named.
func (s *Session) listed(list mcpl.DescriptorList) {
	named := map[string]bool{}
	var added []mcpl.Descriptor
	accepted, _ := s.check(list)
	for _, d := range accepted {
		named[d.ID] = true
		if e := s.entries[d.ID]; (e == nil || !s.declared(e)) && !s.removed[d.ID] {
			added = append(added, d)
		}
	}
	for _, id := range slices.Clone(s.order) {
		if e := s.entries[id]; e.connection != s.connection && !named[id] {
			s.remove(id)
		}
	}
	if len(added) > 0 {
		s.admit(s.enter(added), false)
	}
}

// label is what people call a channel, registered or not.
func (s *Session) label(channelID string) string {
	if e := s.entries[channelID]; e != nil {
		return labelOf(e.descriptor)
	}
	return printable(channelID)
}

// labelOf is what people call a channel: its label, or its id where it has none.
func labelOf(d mcpl.Descriptor) string {
	if d.Label != "" {
		return d.Label
	}
	return printable(d.ID)
}
