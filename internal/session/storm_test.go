package session

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

// storm is a test that does anything to a session, in any order.
type storm struct {
	*bench
	*rand.Rand
	operations []*Operation
	places     int
}

// Whatever happens: once it is over, the connector has open what is decided, the session knows it,
// and nothing is left behind. The connector itself looks for overlapping requests.
func TestAnythingConverges(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			o := demo(6)
			o.Behavior.ForgetOnConnect = seed%2 == 0
			o.Dialect = []connector.Dialect{connector.Dialect05, connector.Dialect04}[seed%3%2]
			b := start(t, setup{Options: o, config: func(c *Config) { c.Window = 1 + int(seed)%4 }})
			s := &storm{bench: b, Rand: rand.New(rand.NewPCG(seed, 1))}
			b.owned(always).up()
			for range 80 {
				s.step()
			}
			s.calm()
		})
	}
}

func (s *storm) id() string { return fmt.Sprint("demo:c", 1+s.IntN(8)) }

// step does one thing. That nobody is connected at the moment is no failure.
func (s *storm) step() {
	id := s.id()
	switch s.IntN(14) {
	case 0, 1, 2:
		s.operations = append(s.operations, s.apply([]v1.State{v1.StateOpen, v1.StateClosed, v1.StateTunedOut}[s.IntN(3)], id))
	case 3:
		s.decide([]v1.State{v1.StateOpen, v1.StateClosed}[s.IntN(2)], id) // carried out with the next operation
		s.operations = append(s.operations, s.session().Apply(id, s.IntN(3)))
	case 4:
		_ = s.c.Notify(s.ctx, "channels/register", map[string]any{"channels": s.c.Channels()})
	case 5:
		_, _ = s.c.Add(s.ctx, connector.AsNotification, elsewhere(id, s.places))
	case 6:
		_, _ = s.c.Remove(s.ctx, connector.AsNotification, id)
	case 7:
		s.places++
		_, _ = s.c.Update(s.ctx, connector.AsNotification, elsewhere(id, s.places))
	case 8:
		_ = s.c.Drop()
	case 9:
		s.c.Once(
			connector.On("", id).Failing(-32000, "no"),
			[]connector.Rule{connector.On("channels/open", id).Substituting("demo:other"), connector.On("", id).Dropping(), connector.On("channels/list", "").Failing(-32601, "")}[s.IntN(3)],
		)
	case 10:
		s.c.Once(connector.On("", id).HeldAt("gate"))
	case 11:
		s.c.Release("gate")
		s.c.Rehold("gate")
	case 12:
		s.ensure(func(c *Config) { c.Window, c.Admission = 1+s.IntN(4), fmt.Sprint(s.IntN(9)) })
	case 13:
		_ = s.c.Notify(s.ctx, "channels/changed", connector.Changes{Removed: []string{id}, Added: []connector.Descriptor{elsewhere(id, s.places)}})
	}
}

// calm ends the storm, and checks what is left.
func (s *storm) calm() {
	s.Helper()
	s.c.ClearRules()
	s.c.Release("gate")
	s.must(s.c.WaitUntil(s.ctx, func() bool { return s.c.Drop() == nil })) // so that it registers once more
	s.must(s.c.WaitRegistered(s.ctx))
	s.idle()
	for _, op := range s.operations {
		if _, _, settled := s.session().Result(op); !settled {
			s.Error("an operation has not settled")
		}
	}
	var open []string
	for _, d := range s.c.Channels() {
		c, want := s.channel(d.ID), v1.TransportClosed
		if s.decisions.WantsOpen(key(d.ID)) {
			want = v1.TransportOpen
			open = append(open, d.ID)
		}
		if c.Transport != want || !c.Registered || c.Outstanding > 0 || c.Failure != nil {
			s.Errorf("%s wants to be %s and is %+v", d.ID, want, c)
		}
	}
	slices.Sort(open)
	s.same(s.c.OpenChannels(), open)
	session, channels := s.session(), len(s.c.Channels())
	session.mu.Lock()
	defer session.mu.Unlock()
	s.same([]int{len(session.queues), session.window.inFlight, len(session.entries), len(session.order)}, []int{0, 0, channels, channels})
}
