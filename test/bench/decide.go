package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// Latencies are how long single things took.
type Latencies []time.Duration

// Percentile is the time that a share p of them did not exceed.
func (l Latencies) Percentile(p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(l))
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

// deciding is how many channels take turns when decisions are made: many more than there are
// clients, so that each has settled when its turn comes again.
const deciding = 100

// kindOf is what the i-th decision asks for, where channels are open at first: each channel is
// closed and opened by turns.
func kindOf(i, channels int) v1.DecisionKind {
	if i/channels%2 == 0 {
		return v1.DecisionClose
	}
	return v1.DecisionOpen
}

// Decide makes n decisions about channels that have settled open, from the given one on, so many at
// once, and tells how long each took from before it was created until its answer was seen.
func (f *Fleet) Decide(ctx context.Context, workers, n, from int) (Latencies, error) {
	channels := min(deciding, f.size.Channels()-from)
	return decide(ctx, f.lab, f.namespace, workers, n, func(ctx context.Context, i int) (*v1.ChannelDecision, error) {
		d := newDecision(f.namespace, f.channelName(from+i%channels), kindOf(i, channels))
		return d, f.lab.admin.Create(ctx, d)
	})
}

// decide creates n decisions, so many at once, and waits for the answer to each.
func decide(ctx context.Context, l *Lab, namespace string, workers, n int, create func(context.Context, int) (*v1.ChannelDecision, error)) (Latencies, error) {
	answers := &answers{known: map[string]chan answer{}}
	stop, err := l.watch(ctx, namespace, &v1.ChannelDecisionList{}, answers.see)
	if err != nil {
		return nil, err
	}
	defer stop()
	latencies := make(Latencies, n)
	_, err = inParallel(ctx, workers, n, func(ctx context.Context, i int) error {
		begun := time.Now()
		d, err := create(ctx, i)
		if err != nil {
			return err
		}
		a, err := answers.await(ctx, d.Name)
		if err != nil {
			return err
		}
		want := v1.ResultOpened
		if d.Spec.Decision == v1.DecisionClose {
			want = v1.ResultClosed
		}
		if a.result != want {
			return fmt.Errorf("decision %d, %s, is answered %s", i, d.Spec.Decision, a.result)
		}
		latencies[i] = a.at.Sub(begun)
		return nil
	})
	return latencies, err
}

func newDecision(namespace, channel string, kind v1.DecisionKind) *v1.ChannelDecision {
	return &v1.ChannelDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: resident + "-"},
		Spec: v1.ChannelDecisionSpec{
			ChannelRef: v1.ChannelReference{Name: channel}, Decision: kind, Source: v1.SourceAgentTool, DecidedBy: resident,
		},
	}
}

// answers are those that a watch has brought, by the name of the decision.
type answers struct {
	mu    sync.Mutex
	known map[string]chan answer
}

type answer struct {
	result v1.Result
	at     time.Time
}

func (a *answers) see(o client.Object) {
	if d := o.(*v1.ChannelDecision); d.Status.CompletedAt != nil {
		select {
		case a.of(d.Name) <- answer{result: d.Status.Result, at: time.Now()}:
		default: // it is known already
		}
	}
}

func (a *answers) of(name string) chan answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[name] == nil {
		a.known[name] = make(chan answer, 1)
	}
	return a.known[name]
}

func (a *answers) await(ctx context.Context, name string) (answer, error) {
	select {
	case got := <-a.of(name):
		return got, nil
	case <-time.After(patience):
		return answer{}, fmt.Errorf("decision %s has no answer after %s", name, patience)
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}
