package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// Plan says what is measured.
type Plan struct {
	Size Size
	// Rounds are how many times plain clients and the operator take turns until all Channels are Ready.
	Rounds int
	// Rest is how long the operator is watched while nothing happens.
	Rest time.Duration
	// Decisions are how many of them are made one after the other, and again in parallel.
	Decisions int
	// Progress is told what is going on.
	Progress io.Writer
}

// quiet is how long nothing must have happened for everything to count as done.
const quiet = 3 * time.Second

// Run measures everything and puts it into the table.
func (p Plan) Run(ctx context.Context, t *Table) error {
	p.say("starting a control plane")
	lab, err := NewLab(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lab.Close() }() // what was measured counts, whatever becomes of the processes
	if err := p.heap(ctx, t, lab); err != nil {
		return fmt.Errorf("measuring the heap: %w", err)
	}
	for _, mode := range []v1.SubscriptionMode{v1.SubscriptionManual, v1.SubscriptionAuto} {
		if err := p.fleet(ctx, t, lab, mode); err != nil {
			return fmt.Errorf("with subscription %s: %w", mode, err)
		}
	}
	return nil
}

func (p Plan) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Progress, "bench: "+format+"\n", args...) // nobody may be listening
}

// fleet measures all that happens to one fleet.
func (p Plan) fleet(ctx context.Context, t *Table, lab *Lab, mode v1.SubscriptionMode) error {
	p.say("%s: connecting %d connectors", mode, p.Size.Connectors)
	f, err := NewFleet(ctx, lab, strings.ToLower(string(mode)), p.Size, mode)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := f.StartManager(); err != nil {
		return err
	}
	if err := f.AwaitConnected(ctx, 1); err != nil {
		return err
	}
	steps := []func(context.Context, *Table, *Fleet) error{p.settle, p.restart, p.rest}
	if mode == v1.SubscriptionAuto { // decisions are about channels that are open at first
		steps = append(steps, p.decideInARow, p.decideInParallel)
	}
	for _, step := range steps {
		if err := step(ctx, t, f); err != nil {
			return err
		}
	}
	return nil
}

// counting is what a step has counted once it is over and all is quiet again.
func counting(ctx context.Context, f *Fleet, step func() error) (Sample, error) {
	if err := f.AwaitQuiet(ctx, quiet); err != nil {
		return Sample{}, err
	}
	before, err := f.Sample()
	if err != nil {
		return Sample{}, err
	}
	if err := step(); err != nil {
		return Sample{}, err
	}
	if err := f.AwaitQuiet(ctx, quiet); err != nil {
		return Sample{}, err
	}
	return f.Since(before)
}

// note shows all that was counted.
func (s Sample) note(t *Table) {
	t.Note("requests: %s", s.Requests)
	t.Note("reconciles: %s; failed %d", tallied(s.Reconciles), s.Failed)
}

// settle measures how Channels become Ready after they were created.
func (p Plan) settle(ctx context.Context, t *Table, f *Fleet) error {
	var bare Bare
	var took time.Duration
	var ratios []float64
	var busy, bareBusy time.Duration
	d, err := counting(ctx, f, func() error {
		// A machine's speed changes from one moment to the next, so both take turns.
		for round := 1; round <= p.Rounds; round++ {
			n := p.Size.Connectors * (p.Size.ChannelsEach * round / p.Rounds)
			p.say("%s: %d Channels by plain clients, then by the operator", f.mode, n-f.declared)
			begun := processorTime()
			b, err := f.Bare(ctx, fmt.Sprintf("%s-bare-%d", f.namespace, round), n-f.declared)
			if err != nil {
				return err
			}
			bare = bare.Plus(b)
			between := processorTime()
			d, err := f.Declare(ctx, n)
			if err != nil {
				return err
			}
			took += d
			busy, bareBusy = busy+processorTime()-between, bareBusy+between-begun
			ratios = append(ratios, ratio(d, b.Total()))
			if err := f.AwaitConnectors(ctx, 1); err != nil {
				return err
			}
			if err := f.AwaitQuiet(ctx, time.Second); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	n := p.Size.Channels()
	t.Title("%d Channels over %d connectors, subscription %s, from created to Ready", n, p.Size.Connectors, f.mode)
	t.Exactly("status writes per Channel", "%.2f", per(n, d.Requests.Writes("channels")), 1, "")
	if f.mode == v1.SubscriptionAuto {
		t.Exactly("appends per Channel", "%.2f", per(n, d.Requests.Writes("channelrecords")), 1, "")
	}
	t.AtMost("reconciles per Channel", "%.2f", per(n, d.Reconciles["channel"]), 2, "")
	t.Show("other writes per Channel", fmt.Sprintf("%.2f", per(n, d.Requests.Writes("connectors"))), "statuses of Connectors")
	t.Show("time", seconds(took), fmt.Sprintf("%.0f Channels/s", float64(n)/took.Seconds()))
	if bareBusy > 0 {
		t.Show("processor time / bare writes", fmt.Sprintf("%.2f", ratio(busy, bareBusy)), fmt.Sprintf(
			"%s to %s, control plane and all; other load hardly matters here", seconds(busy), seconds(bareBusy)))
	}
	slices.Sort(ratios)
	t.AtMost("time / bare writes", "%.2f", ratios[len(ratios)/2], 1.3, fmt.Sprintf("median of %d rounds, %.2f to %.2f; the next goal is 1.15",
		len(ratios), ratios[0], ratios[len(ratios)-1]))
	t.Show("bare writes", seconds(bare.Total()), fmt.Sprintf("create %s, append %s, patch %s, by plain clients",
		seconds(bare.Create), seconds(bare.Append), seconds(bare.Patch)))
	d.note(t)
	return nil
}

// per is how many of something there were for each of n.
func per(n, count int) float64 { return float64(count) / float64(n) }

// restart measures what a new manager does where everything has settled.
func (p Plan) restart(ctx context.Context, t *Table, f *Fleet) error {
	p.say("%s: restarting the manager", f.mode)
	var took time.Duration
	d, err := counting(ctx, f, func() (err error) {
		took, err = f.Restart(ctx, 2)
		return err
	})
	if err != nil {
		return err
	}
	fewest, most := f.Operations()
	t.Title("restart of the manager, subscription %s, until all are confirmed again", f.mode)
	t.Exactly("writes to Channels", "%.0f", float64(d.Requests.Writes("channels")), 0, "")
	t.Exactly("writes to ChannelRecords", "%.0f", float64(d.Requests.Writes("channelrecords")), 0, "")
	t.Exactly("writes per Connector", "%.2f", per(p.Size.Connectors, d.Requests.Writes("connectors")), 1, "for the new session")
	t.Exactly("opens and closes per channel, fewest", "%.0f", float64(fewest), 1, "")
	t.Exactly("opens and closes per channel, most", "%.0f", float64(most), 1, "")
	t.Show("reconciles per Channel", fmt.Sprintf("%.2f", per(p.Size.Channels(), d.Reconciles["channel"])), "")
	t.Show("time", seconds(took), "from the start of the new manager")
	d.note(t)
	return nil
}

// rest measures what happens while nothing does.
func (p Plan) rest(ctx context.Context, t *Table, f *Fleet) error {
	p.say("%s: watching it do nothing for %s", f.mode, p.Rest)
	before, err := f.Sample()
	if err != nil {
		return err
	}
	select {
	case <-time.After(p.Rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	d, err := f.Since(before)
	if err != nil {
		return err
	}
	perMinute := func(n int) float64 { return float64(n) / p.Rest.Minutes() }
	t.Title("at rest, subscription %s, for %s", f.mode, p.Rest)
	t.Exactly("writes per minute", "%.0f", perMinute(d.Requests.Writes("")+d.Requests.Events()), 0, "the Lease's aside")
	t.Exactly("reconciles per minute", "%.0f", perMinute(d.AllReconciles()), 0, "")
	return nil
}

func (p Plan) decideInARow(ctx context.Context, t *Table, f *Fleet) error {
	return p.decide(ctx, t, f, 1, 0)
}

func (p Plan) decideInParallel(ctx context.Context, t *Table, f *Fleet) error {
	return p.decide(ctx, t, f, Parallelism, deciding)
}

// decide measures how long decisions take, about channels that are open.
func (p Plan) decide(ctx context.Context, t *Table, f *Fleet, workers, from int) error {
	p.say("%d decisions, %d at once", p.Decisions, workers)
	bare, err := f.lab.BareDecide(ctx, fmt.Sprintf("bare-decisions-%d", workers), workers, p.Decisions)
	if err != nil {
		return err
	}
	watched, err := f.lab.BareDecideByWatch(ctx, fmt.Sprintf("bare-decisions-watched-%d", workers), workers, p.Decisions)
	if err != nil {
		return err
	}
	var took Latencies
	d, err := counting(ctx, f, func() (err error) {
		took, err = f.Decide(ctx, workers, p.Decisions, from)
		return err
	})
	if err != nil {
		return err
	}
	t.Title("%d decisions, %d at once, from create to Complete", p.Decisions, workers)
	for _, q := range []struct {
		name  string
		share float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		measured, least, hops := took.Percentile(q.share), bare.Percentile(q.share), watched.Percentile(q.share)
		t.Show(q.name, milliseconds(measured), "")
		t.Show(q.name+" / bare", fmt.Sprintf("%.2f", ratio(measured, least)), milliseconds(least)+" for create, append, request, answer")
		t.Show(q.name+" / bare by watch", fmt.Sprintf("%.2f", ratio(measured, hops)), milliseconds(hops)+" for the same, begun and ended by a watch")
	}
	t.Exactly("appends per decision", "%.2f", per(p.Decisions, d.Requests.Writes("channelrecords")), 1, "")
	t.Exactly("answers written per decision", "%.2f", per(p.Decisions, d.Requests.Writes("channeldecisions")), 1, "")
	t.AtMost("status writes of Channels per decision", "%.2f", per(p.Decisions, d.Requests.Writes("channels")), 1, "")
	t.Show("other writes per decision", fmt.Sprintf("%.2f", per(p.Decisions, d.Requests.Writes("connectors"))), "statuses of Connectors")
	t.Show("reconciles of Channels per decision", fmt.Sprintf("%.2f", per(p.Decisions, d.Reconciles["channel"])), "")
	d.note(t)
	return nil
}

// heap measures what Channels take in the manager's memory, and then their records.
func (p Plan) heap(ctx context.Context, t *Table, lab *Lab) error {
	p.say("the heap of the manager, a process of its own")
	f, err := NewFleet(ctx, lab, "heap", p.Size, v1.SubscriptionManual)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	manager, err := f.startProcess(ctx)
	if err != nil {
		return err
	}
	if err := f.AwaitConnected(ctx, 1); err != nil {
		return err
	}
	base, err := manager.liveHeap(ctx)
	if err != nil {
		return err
	}
	if _, err := f.Declare(ctx, p.Size.Channels()); err != nil {
		return err
	}
	declared, err := manager.liveHeap(ctx)
	if err != nil {
		return err
	}
	if err := f.Subscribe(ctx, v1.SubscriptionAuto); err != nil {
		return err
	}
	if err := f.AwaitConnectors(ctx, 1); err != nil {
		return err
	}
	recorded, err := manager.liveHeap(ctx)
	if err != nil {
		return err
	}
	n := int64(p.Size.Channels())
	kib := func(bytes int64) float64 { return float64(bytes) / 1024 }
	mib := func(bytes int64) string { return fmt.Sprintf("%.1f MiB", kib(bytes)/1024) }
	t.Title("live heap of the manager, a process of its own")
	t.AtMost("per Channel", "%.1f KiB", kib((declared-base)/n), 3, fmt.Sprintf("%s with %d Channels, %s with their connectors alone", mib(declared), n, mib(base)))
	t.Show("more with its record", fmt.Sprintf("%.1f KiB", kib((recorded-declared)/n)), mib(recorded)+" with all Channels opened by policy")
	t.Note("Each figure is the least that several collections found alive (go_gc_heap_live_bytes) while nothing was")
	t.Note("reconciled. GOGC=10 makes them collect often; it does not change what lives.")
	return nil
}
