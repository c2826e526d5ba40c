package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/mcpl"
	"mcpl.dev/operator/test/connector"
)

// bareDecider makes and answers decisions without an operator: each is created, appended to its
// channel's record, requested of a connector and answered, by plain clients.
type bareDecider struct {
	lab       *Lab
	namespace string
	peer      *connector.Connector
	conn      *mcpl.Conn
	// names of the channels in their order, and their records by these.
	names   []string
	records map[string]*v1.ChannelRecord
}

func (l *Lab) newBareDecider(ctx context.Context, namespace string) (*bareDecider, error) {
	b := &bareDecider{lab: l, namespace: namespace, records: map[string]*v1.ChannelRecord{}}
	err := l.namespace(ctx, namespace)
	if err == nil {
		b.peer, err = connector.Start(context.Background(), connector.Options{Channels: connector.Generate("connector", deciding), JournalKeep: -1})
	}
	if err == nil {
		b.conn, err = dial(ctx, b.peer.URL())
	}
	if err == nil {
		err = b.createRecords(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bareDecider) createRecords(ctx context.Context) error {
	for i, d := range b.peer.Channels() {
		record := firstRecord(&v1.Channel{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace},
			Spec:       v1.ChannelSpec{ConnectorRef: v1.NameReference{Name: "connector"}, ChannelID: d.ID},
		})
		if err := b.lab.asManager.Create(ctx, record); err != nil {
			return err
		}
		name := fmt.Sprintf("channel-%d", i)
		b.names = append(b.names, name)
		b.records[name] = record
	}
	return nil
}

func (b *bareDecider) close() error {
	if b.conn != nil {
		b.conn.Close("the measurement is over")
	}
	if b.peer != nil {
		return b.peer.Close()
	}
	return nil
}

// create makes the i-th decision.
func (b *bareDecider) create(ctx context.Context, i int) (*v1.ChannelDecision, error) {
	d := newDecision(b.namespace, b.names[i%len(b.names)], kindOf(i, len(b.names)))
	return d, b.lab.admin.Create(ctx, d)
}

// answer does for a decision what the operator has to.
func (b *bareDecider) answer(ctx context.Context, d *v1.ChannelDecision) error {
	record := b.records[d.Spec.ChannelRef.Name]
	state, result := v1.StateOpen, v1.ResultOpened
	if d.Spec.Decision == v1.DecisionClose {
		state, result = v1.StateClosed, v1.ResultClosed
	}
	ref := &v1.DecisionReference{Kind: "ChannelDecision", Name: d.Name, UID: d.UID, Generation: d.Generation}
	appendTo(record, state, v1.SourceAgentTool, resident, ref)
	if err := b.lab.asManager.Update(ctx, record); err != nil {
		return err
	}
	if err := request(ctx, b.conn, record.ChannelID, d.Spec.Decision); err != nil {
		return err
	}
	next := d.DeepCopy()
	next.Status = answeredStatus(record, result)
	return b.lab.asManager.Status().Patch(ctx, next, client.MergeFromWithOptions(d, client.MergeFromWithOptimisticLock{}))
}

// BareDecide makes n decisions without an operator, so many at once, one step right after the other.
func (l *Lab) BareDecide(ctx context.Context, namespace string, workers, n int) (Latencies, error) {
	b, err := l.newBareDecider(ctx, namespace)
	if err != nil {
		return nil, err
	}
	latencies := make(Latencies, n)
	_, err = inParallel(ctx, workers, n, func(ctx context.Context, i int) error {
		begun := time.Now()
		d, err := b.create(ctx, i)
		if err == nil {
			err = b.answer(ctx, d)
		}
		latencies[i] = time.Since(begun)
		return err
	})
	return latencies, errors.Join(err, b.close())
}

// BareDecideByWatch does the same as the least of all controllers would: it learns of a decision by
// a watch, and whoever made it learns of the answer by another.
func (l *Lab) BareDecideByWatch(ctx context.Context, namespace string, workers, n int) (Latencies, error) {
	b, err := l.newBareDecider(ctx, namespace)
	if err != nil {
		return nil, err
	}
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	stop, err := b.answerByWatch(ctx, failed)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	latencies, err := decide(ctx, l, namespace, workers, n, b.create)
	stop()
	return latencies, errors.Join(err, b.close())
}

func (b *bareDecider) answerByWatch(ctx context.Context, failed func(error)) (stop func(), err error) {
	var answering sync.WaitGroup
	begun := map[string]bool{}
	stopWatch, err := b.lab.watch(ctx, b.namespace, &v1.ChannelDecisionList{}, func(o client.Object) {
		d := o.(*v1.ChannelDecision)
		if begun[d.Name] {
			return
		}
		begun[d.Name] = true
		answering.Go(func() {
			if err := b.answer(ctx, d); err != nil {
				failed(err)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return func() {
		stopWatch()
		answering.Wait()
	}, nil
}

// answeredStatus is as large as what the operator answers.
func answeredStatus(record *v1.ChannelRecord, result v1.Result) v1.ChannelDecisionStatus {
	now := metav1.Now()
	s := v1.ChannelDecisionStatus{
		ObservedGeneration: 1, ServerID: record.ServerID, ChannelID: record.ChannelID,
		Revision: record.Revision, Result: result, Message: "The connector has confirmed it.", RecordedAt: &now, CompletedAt: &now,
	}
	for _, kind := range []string{v1.ConditionRecorded, v1.ConditionComplete, v1.ConditionReady} {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: now,
			Reason: string(result), Message: "The decision stands in the channel's record.",
		})
	}
	return s
}

// request asks a connector for one open or close.
func request(ctx context.Context, conn *mcpl.Conn, channelID string, kind v1.DecisionKind) error {
	if kind == v1.DecisionClose {
		_, err := conn.Start(mcpl.MethodChannelsClose, mcpl.CloseParams{ChannelID: channelID}, time.Minute).Wait(ctx)
		return err
	}
	_, err := conn.Start(mcpl.MethodChannelsOpen, mcpl.OpenParams{ChannelID: channelID}, time.Minute).Wait(ctx)
	return err
}

// dial connects to a connector as a host that has nothing to say.
func dial(ctx context.Context, address string) (*mcpl.Conn, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	transport, err := mcpl.DialWebSocket(ctx, mcpl.DialOptions{URL: target})
	if err != nil {
		return nil, err
	}
	conn := mcpl.NewConn(transport, silent{}, mcpl.Options{})
	hello, err := mcpl.Initialize(ctx, conn, mcpl.Implementation{Name: "bench"})
	if err != nil {
		return nil, err
	}
	grant := mcpl.ComputeGrant(hello.Advertised, nil)
	if _, err := mcpl.NegotiatePolicy(ctx, conn, grant, nil); err != nil {
		conn.Close("the handshake failed")
		return nil, err
	}
	conn.Release()
	return conn, nil
}

// silent answers whatever a connector asks with an empty result.
type silent struct{}

func (silent) ServeRequest(context.Context, string, json.RawMessage) mcpl.Answer {
	return mcpl.Answer{}
}

func (silent) ServeNotification(context.Context, string, json.RawMessage) {}
