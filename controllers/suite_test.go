package controllers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/lease"
	"mcpl.dev/operator/internal/session"
	"mcpl.dev/operator/test/cluster"
	"mcpl.dev/operator/test/connector"
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(time.Minute) // what fails to come about; nothing that does takes long
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "controllers")
	goleak.VerifyNone(t, goleak.IgnoreAnyFunction("github.com/onsi/ginkgo/v2/internal/interrupt_handler.(*InterruptHandler).registerForInterrupts.func2"))
}

var (
	control *cluster.Cluster
	manager *rest.Config // with the manager's rights
	k8s     client.Client
)

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))
	var err error
	control, err = cluster.Start(ctx)
	Expect(err).NotTo(HaveOccurred())
	manager, err = control.User(cluster.ManagerUser)
	Expect(err).NotTo(HaveOccurred())
	k8s, err = client.New(control.Config, client.Options{Scheme: ManagerOptions(nil).Scheme})
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() {
	if control != nil {
		Expect(control.Stop()).To(Succeed())
	}
})

var worlds atomic.Int64

// world is a namespace of its own with managers that serve nothing else.
type world struct {
	namespace string
	stopped   func()
	channels  *ChannelReconciler
	faults    faults
}

// faults are what befalls a manager's requests to the API server.
type faults struct {
	mu   sync.Mutex
	fail func(*http.Request) bool
}

// set has the requests for which fail is true answered with 500, and not carried out; nil ends that.
func (f *faults) set(fail func(*http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (f *faults) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		f.mu.Lock()
		fails := f.fail != nil && f.fail(r)
		f.mu.Unlock()
		if !fails {
			return next.RoundTrip(r)
		}
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","reason":"InternalError","code":500}`
		return &http.Response{
			StatusCode: http.StatusInternalServerError, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	})
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	w := &world{namespace: fmt.Sprintf("world-%d", worlds.Add(1))}
	Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
	return w
}

// start runs a manager until stop, or until the spec is over.
func (w *world) start() {
	GinkgoHelper()
	election, err := lease.New(manager, "mcpl-system", w.namespace)
	Expect(err).NotTo(HaveOccurred())
	options := ManagerOptions(election.Lock(), w.namespace)
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.Controller.SkipNameValidation = ptr.To(true) // metrics are the process's, and specs have a manager each
	config := rest.CopyConfig(manager)
	config.Wrap(w.faults.wrap)
	mgr, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	w.channels, err = Setup(ctx, mgr, Options{
		Identity: election.Identity,
		Timing:   session.Timing{RedialBase: 20 * time.Millisecond, RedialMax: 100 * time.Millisecond},
	})
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.stopped = func() {
		GinkgoHelper()
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
		w.stopped = nil
	}
	DeferCleanup(w.stop)
}

func (w *world) stop() {
	if w.stopped != nil {
		w.stopped()
	}
}

// connector starts a connector's process in process, and writes its Pod.
func (w *world) connector(ctx context.Context, name string, o connector.Options) *connector.Connector {
	GinkgoHelper()
	c, err := connector.Start(context.Background(), o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(c.Close)
	w.pod(ctx, name, c)
	return c
}

// another starts a connector with the same channels as those of most specs.
func (w *world) another(_ context.Context) *connector.Connector {
	GinkgoHelper()
	c, err := connector.Start(context.Background(), connector.Options{Channels: connector.Generate("discord:111", 2)})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(c.Close)
	return c
}

// permutations lists all orders of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for i := 0; i <= len(p); i++ {
			all = append(all, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return all
}

func (w *world) pod(ctx context.Context, name string, c *connector.Connector) {
	GinkgoHelper()
	_, err := control.WritePod(ctx, w.namespace, name+"-0", map[string]string{"app": name}, c.Addr())
	Expect(err).NotTo(HaveOccurred())
}

// declare makes a Connector for the pod of a connector.
func (w *world) declare(ctx context.Context, name string, edit ...func(*v1.Connector)) *v1.Connector {
	GinkgoHelper()
	c := &v1.Connector{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1.ConnectorSpec{
			ResidentRef: v1.NameReference{Name: "scout"},
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Transport:   v1.ConnectorTransport{Insecure: true},
		},
	}
	for _, e := range edit {
		e(c)
	}
	Expect(k8s.Create(ctx, c)).To(Succeed())
	return c
}

func (w *world) channel(ctx context.Context, name, connectorName, id string) *v1.Channel {
	GinkgoHelper()
	c := &v1.Channel{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       v1.ChannelSpec{ConnectorRef: v1.NameReference{Name: connectorName}, ChannelID: id},
	}
	Expect(k8s.Create(ctx, c)).To(Succeed())
	return c
}

// younger makes an object that counts as younger than another. Two that were made within one second
// are told apart by their uids, so that it may take a few tries.
func younger[T client.Object](ctx context.Context, than client.Object, make func() T) T {
	GinkgoHelper()
	var made T
	Eventually(ctx, func() bool {
		made = make()
		if older(than, made) {
			return true
		}
		Expect(k8s.Delete(ctx, made)).To(Succeed())
		return false
	}).Should(BeTrue())
	return made
}

// decision makes a ChannelDecision by the resident scout about a Channel.
func (w *world) decision(ctx context.Context, name, channel string, kind v1.DecisionKind, edit ...func(*v1.ChannelDecision)) *v1.ChannelDecision {
	GinkgoHelper()
	d := &v1.ChannelDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1.ChannelDecisionSpec{
			ChannelRef: v1.ChannelReference{Name: channel}, Decision: kind, Source: v1.SourceAgentTool, DecidedBy: "scout",
		},
	}
	if name == "" {
		d.GenerateName = "scout-"
	}
	for _, e := range edit {
		e(d)
	}
	Expect(k8s.Create(ctx, d)).To(Succeed())
	return d
}

// answered waits for a decision's answer.
func (w *world) answered(ctx context.Context, d *v1.ChannelDecision) v1.ChannelDecisionStatus {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
		g.Expect(d.Status.CompletedAt).NotTo(BeNil())
	}).Should(Succeed())
	return d.Status
}

// settled waits until a Channel is Ready as desired.
func (w *world) settled(ctx context.Context, c *v1.Channel, desired v1.State) v1.ChannelStatus {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
		g.Expect(c.Status.Desired).To(Equal(string(desired)))
		g.Expect(condition(c.Status.Conditions, v1.ConditionReady)).To(Equal("True/Settled"))
	}).Should(Succeed())
	return c.Status
}

// condition is "Status/Reason" of a condition, empty where it is not there.
func condition(conditions []metav1.Condition, kind string) string {
	i := slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == kind })
	if i < 0 {
		return ""
	}
	return string(conditions[i].Status) + "/" + conditions[i].Reason
}

// A failed spec shows what the API server had of it.
var _ = JustAfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		out, _ := control.Kubectl(ctx, "get", "connectors,channels,channeldecisions,channelrecords", "-A", "-o", "wide")
		AddReportEntry("objects", out)
	}
})
