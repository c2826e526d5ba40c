package bench

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	clocktesting "k8s.io/utils/clock/testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	goleak.VerifyTestMain(m)
}

// TestCounts holds the operator to the number of its writes, which do not depend on the machine.
//
// The manager's clock stands still while anything happens. What the operator puts off (a state that
// is not final, for 2 s; an outage, for 30 s) it then puts off however slow the machine is, and what
// it writes all the same it always writes. Only where Channels have settled the clock is moved, so
// that the counts of Connectors, which may have to stand a while, are written.
func TestCounts(t *testing.T) {
	lab, err := NewLab(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, lab.Close()) })
	for _, mode := range []v1.SubscriptionMode{v1.SubscriptionManual, v1.SubscriptionAuto} {
		t.Run(string(mode), func(t *testing.T) { testCounts(t, lab, mode) })
	}
}

func testCounts(t *testing.T, lab *Lab, mode v1.SubscriptionMode) {
	ctx := t.Context()
	size := Size{Connectors: 4, ChannelsEach: 50}
	f, err := NewFleet(ctx, lab, strings.ToLower(string(mode)), size, mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, f.Close()) })
	clock := clocktesting.NewFakeClock(time.Now())
	f.Clock, f.Waiting = clock, everySecond(func() { clock.Step(settling) })
	check(t, f.StartManager())
	check(t, f.AwaitConnected(ctx, 1))

	// Opening takes an append and a request for each channel, and one status write like staying closed.
	appends := 0
	if mode == v1.SubscriptionAuto {
		appends = size.Channels()
	}
	settled := counted(t, f, func() {
		if _, err := f.Declare(ctx, size.Channels()); err != nil {
			t.Fatal(err)
		}
		check(t, f.AwaitConnectors(ctx, 1))
	})
	expect(t, "status writes of Channels until they are Ready", settled.Requests.Writes("channels"), size.Channels())
	expect(t, "appends until Channels are Ready", settled.Requests.Writes("channelrecords"), appends)

	expectRest(t, f, "after Channels became Ready")

	restarted := counted(t, f, func() {
		_, err := f.Restart(ctx, 2)
		check(t, err)
	})
	expect(t, "writes of Channels after a restart", restarted.Requests.Writes("channels"), 0)
	expect(t, "appends after a restart", restarted.Requests.Writes("channelrecords"), 0)
	expect(t, "writes of Connectors after a restart", restarted.Requests.Writes("connectors"), size.Connectors)

	expectRest(t, f, "after a restart")
	fewest, most := f.Operations()
	expect(t, "opens and closes of the channel that has had fewest since the restart", fewest, 1)
	expect(t, "opens and closes of the channel that has had most since the restart", most, 1)

	if mode == v1.SubscriptionAuto { // decisions are about channels that are open at first
		expectDecisions(t, f)
	}
}

// expectDecisions holds the operator to one append, one answer and one status write for each
// decision, each about a channel of its own.
func expectDecisions(t *testing.T, f *Fleet) {
	t.Helper()
	ctx, n := t.Context(), deciding
	decided := counted(t, f, func() {
		_, err := f.Decide(ctx, Parallelism, n, 0)
		check(t, err)
		check(t, f.awaitReady(ctx, v1.StateClosed, n))
	})
	expect(t, "appends by decisions", decided.Requests.Writes("channelrecords"), n)
	expect(t, "writes of decisions", decided.Requests.Writes("channeldecisions"), n)
	expect(t, "writes of Channels after decisions", decided.Requests.Writes("channels"), n)
}

// settling is more than a state must have stood to be written, and far less than a ping may take.
const settling = 3 * time.Second

// everySecond makes of what is called often what is done once a second at most.
func everySecond(do func()) func() {
	last := time.Now()
	return func() {
		if time.Since(last) > time.Second {
			last = time.Now()
			do()
		}
	}
}

// expectRest holds the operator to doing nothing where nothing has changed: news that says nothing
// new comes several times over for every object, and none of it is followed by a write. A write
// that was still due from before is found here, too.
func expectRest(t *testing.T, f *Fleet, when string) {
	t.Helper()
	const rounds = 3
	d := counted(t, f, func() {
		for round := range rounds {
			check(t, f.Touch(t.Context(), round))
		}
	})
	expect(t, "writes at rest, "+when+" ("+d.Requests.String()+")", d.Requests.Writes(""), 0)
}

// counted is what is counted while something is done.
func counted(t *testing.T, f *Fleet, do func()) Sample {
	t.Helper()
	before, err := f.Sample()
	check(t, err)
	do()
	d, err := f.Since(before)
	check(t, err)
	expect(t, "failed reconciliations", d.Failed, 0)
	for _, request := range slices.Collect(maps.Keys(d.Requests)) {
		if request.Refused != 0 {
			t.Errorf("%d of these requests were made: %s", d.Requests[request], request)
		}
	}
	return d
}

func expect(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
