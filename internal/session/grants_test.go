package session

import (
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/mcpl"
	"mcpl.dev/operator/test/connector"
)

// offering has the connector advertise these leaves of channels from now on, and say so.
func (b *bench) offering(leaves ...string) {
	b.Helper()
	m := connector.DefaultManifest(connector.Dialect05, "demo")
	m["channels"] = connector.Leaves(leaves...)
	b.c.SetManifest(m)
	b.must(b.c.ManifestChanged(b.ctx))
}

func (b *bench) grant() mcpl.Grant {
	s := b.session()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grant
}

func serving(o connector.Options) connector.Options {
	o.Behavior.ServeManifest = true
	return o
}

var without = []string{"register", "publish", "incoming"}

func TestReductionIsAppliedBeforeItIsTold(t *testing.T) {
	b := start(t, setup{Options: serving(demo(1))}).owned(always).registered()
	b.c.Once(connector.On("featureSets/update", "").HeldAt("policy").Beside())
	b.offering(without...)
	b.held("policy", 1)
	if b.grant().Allows(mcpl.CapChannelsLifecycle) {
		t.Error("I07 lifecycle is still granted while the connector is being told")
	}
	b.c.Reset()
	outcome, _ := b.result(b.apply(v1.StateOpen, "demo:c1"))
	b.same(outcome.Failure, v1.CauseNotPermitted)
	b.c.Release("policy")
	b.sent()
}

func TestExpansionIsAppliedAfterItsReceipt(t *testing.T) {
	o := serving(demo(1))
	o.Manifest = connector.DefaultManifest(connector.Dialect05, "demo")
	o.Manifest["channels"] = connector.Leaves(without...)
	b := start(t, setup{Options: o}).owned(always).registered()
	b.c.Once(connector.On("featureSets/update", "").AnswerHeldAt("policy").Beside())
	b.offering(append(without, "lifecycle")...)
	b.held("policy", 1)
	if b.grant().Allows(mcpl.CapChannelsLifecycle) {
		t.Error("I08 lifecycle is granted before the connector has accepted it")
	}
	b.c.Release("policy")
	b.until("lifecycle is granted", func() bool { return b.grant().Allows(mcpl.CapChannelsLifecycle) })
	b.rest()
	b.sent("close demo:c1")
}

func TestRefusedExpansionEmptiesTheGrant(t *testing.T) {
	b := start(t, setup{Options: serving(demo(1))}).owned(always).registered()
	b.c.Change(func(behavior *connector.Behavior) { behavior.Policy.Kind = connector.PolicyMCPOnly })
	b.offering(without...)
	b.until("nothing is granted", func() bool { return b.grant().Empty() })
	b.same(b.snapshot().Peer.Negotiated, v1.ReasonRefusedMCPOnly)
}

func TestFailedFetchChangesNothing(t *testing.T) {
	b := start(t, setup{Options: demo(1)}).owned(always).registered() // fact 17: it does not serve its manifest
	before := b.grant().Paths()
	b.offering(without...)
	b.must(b.c.WaitCount(b.ctx, "mcpl/manifest", "", 1))
	b.flush()
	b.same(b.grant().Paths(), before)
	b.same(b.snapshot().State, v1.ConnectorUp)
}

func TestManifestIsFetchedOnceInAWhile(t *testing.T) {
	b := start(t, setup{Options: serving(demo(1))}).owned(always).registered()
	for range 50 {
		b.must(b.c.ManifestChanged(b.ctx))
	}
	b.must(b.c.WaitCount(b.ctx, "mcpl/manifest", "", 1))
	b.flush()
	b.same(b.c.Count("mcpl/manifest", ""), 1) // the trailing one is due when the pause is over
}
