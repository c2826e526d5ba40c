package session

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

// canary is a token that must never be told.
const canary = "canary-4711"

func secret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "residents", Name: name}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func withToken(c *Config) { c.Target.TokenSecret, c.Target.TokenKey = "token", "token" }

// untold fails where a secret has got into something that people read.
func (b *bench) untold() {
	b.Helper()
	s := b.session()
	s.mu.Lock()
	texts := []string{s.trouble.Message, s.trouble.Reason}
	s.mu.Unlock()
	for _, e := range b.notify.told() {
		texts = append(texts, e.Message)
	}
	if all := strings.Join(texts, "\n"); strings.Contains(all, canary) || strings.Contains(all, "token=") {
		b.Errorf("a token is told: %s", all)
	}
}

func TestHowTokensAreSent(t *testing.T) {
	var mu sync.Mutex
	var got []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	b := start(t, setup{secrets: []client.Object{secret("token", map[string]string{"token": canary + "&/+"})}})
	d := &NetDialer{
		Secrets: b.secrets, Identity: identity("7.3", "manager-1"), AllowURLs: true, AllowedNetworks: []*net.IPNet{network("127.0.0.0/8")},
	}
	for name, test := range map[string]struct {
		target       Target
		bearer, path string
	}{
		"bearer to a pod":           {Target{Address: address, Path: "/mcpl", TokenSecret: "token", TokenKey: "token"}, "Bearer " + canary + "&/+", "/mcpl"},
		"none to a pod":             {Target{Address: address, Path: "/mcpl"}, "", "/mcpl"},
		"?token= to a url":          {Target{URL: "ws://" + address + "/x?room=1", TokenSecret: "token", TokenKey: "token"}, "", "/x?room=1&token=canary-4711%26%2F%2B"},
		"none to a url":             {Target{URL: "ws://" + address + "/x?room=1"}, "", "/x?room=1"},
		"it replaces that of a url": {Target{URL: "ws://" + address + "/x?token=old", TokenSecret: "token", TokenKey: "token"}, "", "/x?token=canary-4711%26%2F%2B"},
	} {
		t.Run(name, func(t *testing.T) {
			test.target.Namespace = "residents"
			_, err := d.Dial(b.ctx, test.target)
			mu.Lock()
			defer mu.Unlock()
			last := got[len(got)-1]
			b.same([]string{last.Header.Get("Authorization"), last.URL.RequestURI()}, []string{test.bearer, test.path})
			b.same(last.Header.Get("Mcpl-Term")+" "+last.Header.Get("Mcpl-Host"), "7.3 manager-1")
			if err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("fails with %v", err)
			}
			b.same(troubleOf(err), Trouble{Reason: v1.ReasonNotMCPL, Message: "no WebSocket: something else answers (HTTP 418)"})
		})
	}
}

func TestToken(t *testing.T) {
	o := demo(1)
	o.Token = canary
	t.Run("the right one", func(t *testing.T) {
		b := start(t, setup{Options: o, config: withToken, secrets: []client.Object{secret("token", map[string]string{"token": canary})}}).owned(always).registered()
		b.settles(b.apply(v1.StateOpen, "demo:c1"), ok)
	})
	t.Run("P21 a wrong one is tried again after a wait", func(t *testing.T) {
		clk := newClock()
		s := secret("token", map[string]string{"token": "old"})
		b := start(t, setup{Options: o, config: withToken, secrets: []client.Object{s}, clock: clk, timing: hour})
		b.ensure()
		d := b.waits(clk, 1, time.Hour)
		b.same(b.untilTrouble(v1.ReasonTokenRefused), "the token was refused (HTTP 401)")
		b.untold()
		s.Data["token"] = []byte(canary)
		b.must(b.secrets.Update(b.ctx, s))
		clk.Step(d)
		b.until("it to be up", func() bool { return b.snapshot().State == v1.ConnectorUp })
	})
	t.Run("P21 one that was renewed meanwhile is dialled at once", func(t *testing.T) {
		clk := newClock()
		s := secret("token", map[string]string{"token": "old"})
		b := start(t, setup{Options: o, config: withToken, secrets: []client.Object{s}, clock: clk, timing: hour, dialer: func(d *NetDialer) Dialer {
			d.Secrets = &changingReader{Reader: d.Secrets, after: 1, change: func(c client.Reader) error {
				s.Data["token"] = []byte(canary)
				return c.(client.Client).Update(context.Background(), s)
			}}
			return d
		}})
		b.up()
		b.same(len(clk.made(redials)), 0)
	})
	t.Run("P21 it is renewed while connected, and the old connection is cut", func(t *testing.T) {
		clk := newClock()
		s := secret("token", map[string]string{"token": canary})
		b := start(t, setup{Options: o, config: withToken, secrets: []client.Object{s}, clock: clk, timing: hour}).owned(always).registered()
		b.must(b.c.Drop())
		clk.Step(b.waits(clk, 1, time.Hour))
		b.until("it to be up", func() bool { return b.snapshot().Generation == 2 })
	})
}

// changingReader has a Secret change behind the back of its reader, after some reads.
type changingReader struct {
	client.Reader
	after  int
	change func(client.Reader) error
}

func (r *changingReader) Get(ctx context.Context, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, k, o, opts...)
	if r.after--; r.after == 0 {
		err = errors.Join(err, r.change(r.Reader))
	}
	return err
}

// brokenReader fails.
type brokenReader struct {
	client.Reader
	err error
}

func (r brokenReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return r.err
}

func TestDialTroubles(t *testing.T) {
	token := secret("token", map[string]string{"token": canary})
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "token", errors.New("no "+canary))
	for name, test := range map[string]struct {
		secrets         []client.Object
		options         func(*connector.Options)
		config          func(*Config)
		dialer          func(*NetDialer)
		reason, message string
	}{
		"no Secret":    {config: withToken, reason: v1.ReasonTokenRefused, message: "secret token does not exist"},
		"no key in it": {config: withToken, secrets: []client.Object{secret("token", nil)}, reason: v1.ReasonTokenRefused, message: "secret token has no key token"},
		"an empty key": {config: withToken, secrets: []client.Object{secret("token", map[string]string{"token": ""})}, reason: v1.ReasonTokenRefused, message: "secret token has no key token"},
		"it may not be read": {
			config: withToken, dialer: func(d *NetDialer) { d.Secrets = brokenReader{err: forbidden} },
			reason: v1.ReasonTokenRefused, message: "the manager may not read secret token: bind it a Role with get on it",
		},
		"it can't be read": {
			config: withToken, dialer: func(d *NetDialer) { d.Secrets = brokenReader{err: errors.New(canary)} },
			reason: v1.ReasonTokenRefused, message: "secret token can not be read",
		},
		"a CA that does not exist": {
			config: func(c *Config) { c.Target.TLS, c.Target.CASecret = true, "ca" }, reason: v1.ReasonDialFailed, message: "secret ca does not exist",
		},
		"a CA that is none": {
			config:  func(c *Config) { c.Target.TLS, c.Target.CASecret = true, "ca" },
			secrets: []client.Object{secret("ca", map[string]string{"ca.crt": canary})}, reason: v1.ReasonDialFailed, message: "secret ca has no certificate in ca.crt",
		},
		"a client certificate that is none": {
			config:  func(c *Config) { c.Target.TLS, c.Target.ClientCertSecret = true, "me" },
			secrets: []client.Object{secret("me", map[string]string{"tls.crt": canary, "tls.key": canary})}, reason: v1.ReasonDialFailed, message: "secret me has no usable tls.crt and tls.key",
		},
		"TLS to what has none": {config: func(c *Config) { c.Target.TLS = true }, reason: v1.ReasonDialFailed, message: "TLS: the answer is not TLS"},
		"refused with 403":     {options: func(o *connector.Options) { o.Behavior.RefuseStatus = 403 }, reason: v1.ReasonTokenRefused, message: "the token was refused (HTTP 403)"},
		"refused with 503":     {options: func(o *connector.Options) { o.Behavior.RefuseStatus = 503 }, reason: v1.ReasonNotMCPL, message: "no WebSocket: something else answers (HTTP 503)"},
		"P16 garbage":          {options: func(o *connector.Options) { o.Behavior.GarbleUpgrades = true }, reason: v1.ReasonNotMCPL, message: "no WebSocket: the answer is not HTTP"},
		"another path":         {config: func(c *Config) { c.Target.Path = "/x" }, reason: v1.ReasonNotMCPL, message: "no WebSocket: something else answers (HTTP 404)"},
		"no identity": {
			dialer: func(d *NetDialer) {
				d.Identity = func(context.Context) (Identity, error) { return Identity{}, errors.New("it does not lead") }
			},
			reason: v1.ReasonDialFailed, message: "it does not lead",
		},
		"a url while none is allowed": {
			config: func(c *Config) { c.Target = Target{URL: "ws://" + c.Target.Address + "/mcpl"} },
			reason: v1.ReasonDialFailed, message: "spec.url is not allowed: the manager runs without --allow-connector-urls",
		},
		"a url that is none": {
			config: func(c *Config) { c.Target = Target{URL: "ws://%zz/?token=" + canary} },
			dialer: func(d *NetDialer) { d.AllowURLs = true }, reason: v1.ReasonDialFailed, message: "the address is no URL",
		},
		"a url of another scheme": {
			config: func(c *Config) { c.Target = Target{URL: "http://chat.example/?token=" + canary} },
			dialer: func(d *NetDialer) { d.AllowURLs = true }, reason: v1.ReasonDialFailed, message: "unreachable: the URL is neither ws nor wss",
		},
		"a url to where only the manager gets": {
			config: func(c *Config) { c.Target = Target{URL: "ws://" + c.Target.Address + "/mcpl?token=" + canary} },
			dialer: func(d *NetDialer) { d.AllowURLs = true },
			reason: v1.ReasonDialFailed, message: "spec.url leads to a loopback address, which is not allowed: see the manager's --connector-url-network",
		},
		"a name that leads there": {
			config: func(c *Config) { c.Target = Target{URL: "ws://localhost:" + port(c.Target.Address) + "/mcpl"} },
			dialer: func(d *NetDialer) { d.AllowURLs = true; d.AllowedNetworks = []*net.IPNet{network("10.0.0.0/8")} },
			reason: v1.ReasonDialFailed, message: "spec.url leads to a loopback address, which is not allowed: see the manager's --connector-url-network",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := demo(1)
			if test.options != nil {
				test.options(&o)
			}
			if test.secrets == nil && test.dialer == nil && test.config == nil {
				test.secrets, test.config = []client.Object{token}, withToken
			}
			b := start(t, setup{Options: o, secrets: test.secrets, config: test.config, timing: Timing{time.Hour, time.Hour}, mayViolate: true, dialer: func(d *NetDialer) Dialer {
				if test.dialer != nil {
					test.dialer(d)
				}
				return d
			}})
			b.ensure()
			b.same(b.untilTrouble(test.reason), test.message)
			b.same(b.snapshot().State, v1.ConnectorConnecting)
			b.untold()
		})
	}
}

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

func TestURL(t *testing.T) {
	o := demo(1)
	o.Token = canary
	b := start(t, setup{
		Options: o, secrets: []client.Object{secret("token", map[string]string{"token": canary})},
		config: func(c *Config) { withToken(c); c.Target.URL, c.Target.Address = "ws://"+c.Target.Address+"/mcpl", "" },
		dialer: func(d *NetDialer) Dialer {
			d.AllowURLs, d.AllowedNetworks = true, []*net.IPNet{network("10.0.0.0/8"), network("127.0.0.0/8")}
			return d
		},
	}).owned(always).registered()
	b.settles(b.apply(v1.StateOpen, "demo:c1"), ok)
	b.must(b.c.Drop())
	b.untilTrouble(v1.ReasonConnectionLost)
	b.untold()
}

// Another host holds the connector: it is not fought for.
func TestOtherHost(t *testing.T) {
	clk := newClock()
	b := start(t, setup{Options: demo(1), clock: clk, timing: hour}).owned(always)
	ws, _, err := websocket.Dial(b.ctx, b.c.URL(), &websocket.DialOptions{HTTPHeader: http.Header{"Mcpl-Term": {"9.1"}, "Mcpl-Host": {"manager-1"}}})
	b.must(err)
	b.ensure()
	d := b.waits(clk, 1, time.Hour)
	b.same(b.untilTrouble(v1.ReasonOtherHost), "another host holds the connector: manager-1 (term 9.1)")
	b.must(ws.CloseNow())
	b.c.Restart() // its fence forgets
	clk.Step(d)
	b.until("it to be up", func() bool { return b.snapshot().State == v1.ConnectorUp })
}
