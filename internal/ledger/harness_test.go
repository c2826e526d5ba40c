package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/test/cluster"
)

var (
	// admin is a person who may do everything; manager has the rights of the shipped role.
	admin, manager client.WithWatch
	start          = time.Unix(1_700_000_000, 0)
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	control, err := cluster.Start(context.Background())
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := control.Stop(); err != nil {
			code = fail(err)
		}
	}()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return fail(err)
	}
	if admin, err = client.NewWithWatch(control.Config, client.Options{Scheme: scheme}); err != nil {
		return fail(err)
	}
	config, err := control.User(cluster.ManagerUser)
	if err != nil {
		return fail(err)
	}
	if manager, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fail(err)
	}
	return m.Run()
}

// call is a request of the ledger's that is about to be made.
type call struct {
	// made makes it. unanswered makes it so that the ledger learns nothing of the answer.
	made, unanswered func() error
}

// fault is what happens to a call instead of it being made.
type fault func(call) error

// fails has a call fail before it reaches the API server.
func fails(err error) fault { return func(call) error { return err } }

// losesAnswer has a call take place, and its answer replaced by an error.
func losesAnswer(err error) fault {
	return func(c call) error {
		if made := c.unanswered(); made != nil {
			panic(fmt.Sprintf("the call was to be accepted: %v", made))
		}
		return err
	}
}

// book is a ledger on the real API server, about one channel, with a connection that can be spoilt.
type book struct {
	*ledger.Ledger
	t     *testing.T
	key   pair.Key
	clock *clocktesting.FakePassiveClock

	mu     sync.Mutex
	calls  []string           // the verbs of the calls so far
	faults map[string][]fault // what happens to the next calls of a verb
	ids    int
	limit  int64 // of a page, where it is not the ledger's own
}

// newBook makes a ledger in a namespace of its own.
func newBook(t *testing.T) *book {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ledger-"}}
	must(t, admin.Create(t.Context(), namespace))
	return bookOf(t, pair.Key{Namespace: namespace.Name, ServerID: "discord", ChannelID: "discord:111:222"})
}

// bookOf makes one more ledger about a channel, as another manager would have it.
func bookOf(t *testing.T, key pair.Key) *book {
	b := &book{t: t, key: key, clock: clocktesting.NewFakePassiveClock(start), faults: map[string][]fault{}}
	spoilt := interceptor.NewClient(manager, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return b.call("get", o, func(o client.Object) error { return c.Get(ctx, key, o, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return b.call("create", o, func(o client.Object) error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return b.call("update", o, func(o client.Object) error { return c.Update(ctx, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if b.limit > 0 {
				opts = append(opts, client.Limit(b.limit))
			}
			return b.call("list", nil, func(client.Object) error { return c.List(ctx, list, opts...) })
		},
	})
	b.Ledger = ledger.New(spoilt, spoilt, b.clock, b.newID)
	return b
}

// newID makes ids that are unique among all ledgers of a test.
func (b *book) newID() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids++
	return fmt.Sprintf("%p-%d", b, b.ids)
}

func (b *book) call(verb string, o client.Object, do func(client.Object) error) error {
	b.mu.Lock()
	b.calls = append(b.calls, verb)
	var next fault
	if queue := b.faults[verb]; len(queue) > 0 {
		next, b.faults[verb] = queue[0], queue[1:]
	}
	b.mu.Unlock()
	if next == nil {
		return do(o)
	}
	return next(call{
		made:       func() error { return do(o) },
		unanswered: func() error { return do(o.DeepCopyObject().(client.Object)) },
	})
}

// spoil has the next calls of a verb meet these faults, one each.
func (b *book) spoil(verb string, faults ...fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults[verb] = append(b.faults[verb], faults...)
}

// made forgets the calls so far and returns them.
func (b *book) made() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := strings.Join(b.calls, " ")
	b.calls = nil
	return calls
}

// append appends over the record in force.
func (b *book) append(e ledger.Entry) (decision.Record, error) {
	return b.Append(b.t.Context(), b.key, b.Record(b.key), e)
}

// has appends what a test begins with, and forgets the calls that it took.
func (b *book) has(entries ...ledger.Entry) *book {
	b.t.Helper()
	for _, e := range entries {
		_, err := b.append(e)
		must(b.t, err)
	}
	b.made()
	return b
}

// stored is the ChannelRecord on the API server, nil where there is none.
func (b *book) stored() *v1.ChannelRecord {
	b.t.Helper()
	object := &v1.ChannelRecord{}
	err := admin.Get(b.t.Context(), client.ObjectKey{Namespace: b.key.Namespace, Name: b.key.RecordName()}, object)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return object
}

// somebodyWrites changes the record as another manager does, and returns what it then is.
func (b *book) somebodyWrites(w decision.Write) *v1.ChannelRecord {
	b.t.Helper()
	other := bookOf(b.t, b.key)
	must(b.t, other.Load(b.t.Context()))
	_, err := other.append(ledger.Entry{Write: &w, HistoryLimit: 10})
	must(b.t, err)
	return b.stored()
}

// somebodyTouches changes the object, but nothing of what is decided.
func (b *book) somebodyTouches() *v1.ChannelRecord {
	b.t.Helper()
	object := b.stored()
	object.Annotations = map[string]string{"touched": object.ResourceVersion}
	must(b.t, admin.Update(b.t.Context(), object))
	return object
}

func (b *book) somebodyDeletes() {
	b.t.Helper()
	must(b.t, admin.Delete(b.t.Context(), b.stored()))
}

// force checks what is in force: on the API server, and in memory.
func (b *book) force(want string) {
	b.t.Helper()
	b.remembers(want)
	b.stores(want)
}

// remembers checks what is in force in memory.
func (b *book) remembers(want string) {
	b.t.Helper()
	if got := inWords(b.Record(b.key)); got != want {
		b.t.Errorf("in memory is %s, want %s", got, want)
	}
	if object := b.Object(b.key); (object == nil) != (b.Record(b.key).Revision == 0) || object != nil && inWords(recordOf(object)) != want {
		b.t.Errorf("the object in memory is %+v, want %s", object, want)
	}
}

// stores checks what is in force on the API server.
func (b *book) stores(want string) {
	b.t.Helper()
	got := "none"
	if object := b.stored(); object != nil {
		got = inWords(recordOf(object))
	}
	if got != want && !(got == "none" && strings.HasSuffix(want, "@0")) {
		b.t.Errorf("stored is %s, want %s", got, want)
	}
}

// requests checks which calls were made since the last look.
func (b *book) requests(want string) {
	b.t.Helper()
	if got := b.made(); got != want {
		b.t.Errorf("the calls were %q, want %q", got, want)
	}
}

func recordOf(object *v1.ChannelRecord) decision.Record {
	return decision.Record{State: object.Record.State, Source: object.Record.Source, Revision: object.Revision}
}

// inWords is a record as "Open/AgentTool@3", or "none".
func inWords(r decision.Record) string {
	if !r.Decided() {
		return "none"
	}
	return fmt.Sprintf("%s/%s@%d", r.State, r.Source, r.Revision)
}

var (
	opened   = decision.Write{State: v1.StateOpen, Source: v1.SourceAgentTool}
	closed   = decision.Write{State: v1.StateClosed, Source: v1.SourceAgentTool}
	byModule = decision.Write{State: v1.StateClosed, Source: v1.SourceModuleTool}
	lifted   = decision.Write{State: v1.StateOpen, Source: v1.SourceSubscriptionPolicy}
)

// entry is a decision that writes w.
func entry(w decision.Write) ledger.Entry {
	return ledger.Entry{Write: &w, HistoryLimit: 10}
}

// note is a decision from Git that was answered without a record.
func note() ledger.Entry {
	return ledger.Entry{Ref: reference("from-git"), Named: true, DecidedBy: "scout", HistoryLimit: 10}
}

func reference(name string) *v1.DecisionReference {
	return &v1.DecisionReference{Kind: "ChannelDecision", Name: name, UID: types.UID("uid-of-" + name), Generation: 1}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("the error is %v, want %v", got, want)
	}
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("not what was wanted (-want +got):\n%s", diff)
	}
}

// idsOf are the ids of a history, newest first.
func idsOf(history []v1.HistoryEntry) []string {
	var ids []string
	for _, e := range history {
		ids = append(ids, e.ID)
	}
	return ids
}
