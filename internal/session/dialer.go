package session

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/mcpl"
)

// Dialer makes connections.
type Dialer interface {
	// Dial connects to a target. ctx bounds the dial, not the connection.
	Dial(ctx context.Context, t Target) (mcpl.Transport, error)
	// Renewed reports whether the token of a target is another than the one it refused at its last dial.
	Renewed(ctx context.Context, t Target) bool
}

// Identity is how this host presents itself, so that a connector knows whether it may take over.
type Identity struct {
	// Term is "<unix seconds>.<transitions>" of the leader election's Lease.
	Term string
	// Host is the Lease's holder.
	Host string
}

// NetDialer dials WebSockets, and bare TCP where that is asked for. It reads the secrets afresh each
// time and keeps none of them.
type NetDialer struct {
	// Secrets reads the API server itself: no Secret is cached.
	Secrets client.Reader
	// Identity of the host; it fails where this process may not speak to connectors.
	Identity func(context.Context) (Identity, error)
	// AllowURLs lets targets be urls, and AllowedNetworks lets those lead to addresses that are
	// otherwise denied.
	AllowURLs       bool
	AllowedNetworks []*net.IPNet

	mu sync.Mutex
	// refused holds a hash of the token of each target that refused one at its last dial.
	refused map[Target][sha256.Size]byte
}

// Dial implements Dialer.
func (d *NetDialer) Dial(ctx context.Context, t Target) (mcpl.Transport, error) {
	if t.URL != "" && !d.AllowURLs {
		return nil, &Failure{Reason: v1.ReasonDialFailed, Err: errors.New("spec.url is not allowed: the manager runs without --allow-connector-urls")}
	}
	if t.TCP {
		return d.dialTCP(ctx, t)
	}
	address, err := t.url()
	if err != nil {
		return nil, &Failure{Reason: v1.ReasonDialFailed, Err: errors.New("the address is no URL")}
	}
	id, err := d.Identity(ctx)
	if err != nil {
		return nil, &Failure{Reason: v1.ReasonDialFailed, Err: err}
	}
	o := mcpl.DialOptions{URL: address, Header: http.Header{"Mcpl-Term": {id.Term}, "Mcpl-Host": {id.Host}}}
	if t.TLS {
		if o.TLS, err = d.tls(ctx, t); err != nil {
			return nil, &Failure{Reason: v1.ReasonDialFailed, Err: err}
		}
	}
	token, err := d.token(ctx, t)
	if err != nil {
		return nil, &Failure{Reason: v1.ReasonTokenRefused, Err: err}
	}
	switch {
	case token == "":
	case t.URL != "":
		query := address.Query()
		query.Set("token", token)
		address.RawQuery = query.Encode()
	default:
		o.Header.Set("Authorization", "Bearer "+token)
	}
	if t.URL != "" {
		// The address is checked when it is dialled, not when the name is resolved: a name may
		// resolve to something else the next time.
		o.DialContext = (&net.Dialer{Control: d.checkAddress}).DialContext
	}
	transport, err := mcpl.DialWebSocket(ctx, o)
	if err == nil {
		d.remember(t, token, false)
		return transport, nil
	}
	failure := dialFailure(err)
	d.remember(t, token, refusedToken(failure))
	return nil, failure
}

// dialTCP connects without a token, a term or encryption: there is nowhere to put them. The connector
// has no fence then, and only the closing of the connection tells it that this host is done.
func (d *NetDialer) dialTCP(ctx context.Context, t Target) (mcpl.Transport, error) {
	if _, err := d.Identity(ctx); err != nil {
		return nil, &Failure{Reason: v1.ReasonDialFailed, Err: err}
	}
	transport, err := mcpl.DialTCP(ctx, mcpl.TCPOptions{Address: t.Address})
	if err != nil {
		return nil, dialFailure(err)
	}
	return transport, nil
}

// Renewed implements Dialer.
func (d *NetDialer) Renewed(ctx context.Context, t Target) bool {
	token, err := d.token(ctx, t)
	if err != nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused[t] != sha256.Sum256([]byte(token))
}

func (d *NetDialer) remember(t Target, token string, refused bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !refused {
		delete(d.refused, t)
		return
	}
	if d.refused == nil {
		d.refused = map[Target][sha256.Size]byte{}
	}
	d.refused[t] = sha256.Sum256([]byte(token))
}

// token is the bearer token of a target, empty where it has none.
func (d *NetDialer) token(ctx context.Context, t Target) (string, error) {
	if t.TokenSecret == "" {
		return "", nil
	}
	data, err := d.secret(ctx, t.Namespace, t.TokenSecret)
	if err != nil {
		return "", err
	}
	value, ok := data[t.TokenKey]
	if !ok || len(value) == 0 {
		return "", fmt.Errorf("secret %s has no key %s", t.TokenSecret, t.TokenKey)
	}
	return string(value), nil
}

func (d *NetDialer) tls(ctx context.Context, t Target) (*tls.Config, error) {
	config := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CASecret != "" {
		data, err := d.secret(ctx, t.Namespace, t.CASecret)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data["ca.crt"]) {
			return nil, fmt.Errorf("secret %s has no certificate in ca.crt", t.CASecret)
		}
	}
	if t.ClientCertSecret != "" {
		data, err := d.secret(ctx, t.Namespace, t.ClientCertSecret)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
		if err != nil {
			return nil, fmt.Errorf("secret %s has no usable tls.crt and tls.key", t.ClientCertSecret)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (d *NetDialer) secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	switch err := d.Secrets.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &secret); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("secret %s does not exist", name)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the manager may not read secret %s: bind it a Role with get on it", name)
	case err != nil:
		return nil, fmt.Errorf("secret %s can not be read", name)
	}
	return secret.Data, nil
}

// errDenied is why an address may not be dialled.
type errDenied struct{ why string }

func (e errDenied) Error() string {
	return "spec.url leads to " + e.why + ", which is not allowed: see the manager's --connector-url-network"
}

func (d *NetDialer) checkAddress(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return errDenied{"no address"}
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return errDenied{"no address"}
	}
	if why := deniedIP(ip, d.AllowedNetworks); why != "" {
		return errDenied{why}
	}
	return nil
}

// dialFailure says in the words of a Connector's conditions why a dial failed.
func dialFailure(err error) *Failure {
	var denied errDenied
	if errors.As(err, &denied) {
		return &Failure{Reason: v1.ReasonDialFailed, Err: denied}
	}
	reason := v1.ReasonDialFailed
	var dial *mcpl.DialError
	if errors.As(err, &dial) {
		switch dial.Class {
		case mcpl.TokenRefused:
			reason = v1.ReasonTokenRefused
		case mcpl.OtherHost:
			reason = v1.ReasonOtherHost
		case mcpl.NotMCPL:
			reason = v1.ReasonNotMCPL
		}
	}
	return &Failure{Reason: reason, Err: err}
}
