package session

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// issue makes a certificate for a name, and its key.
func (a *authority) issue(name string, expires time.Duration) (certPEM, keyPEM string) {
	a.t.Helper()
	key := a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(expires),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}

func TestTLS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	me, myKey := ca.issue("manager", time.Hour)
	stranger, strangerKey := other.issue("manager", time.Hour)
	secrets := []client.Object{
		secret("ca", map[string]string{"ca.crt": ca.pem}), secret("other-ca", map[string]string{"ca.crt": other.pem}),
		secret("me", map[string]string{"tls.crt": me, "tls.key": myKey}), secret("stranger", map[string]string{"tls.crt": stranger, "tls.key": strangerKey}),
		secret("token", map[string]string{"token": canary}),
	}
	for name, test := range map[string]struct {
		expires time.Duration
		mutual  bool
		change  func(*Target)
		message string // of the trouble; none if it is empty
	}{
		"a CA and a name":                           {},
		"a client certificate":                      {mutual: true, change: func(t *Target) { t.ClientCertSecret = "me" }},
		"an unknown CA":                             {change: func(t *Target) { t.CASecret = "other-ca" }, message: "TLS: certificate of an unknown authority"},
		"the system's CAs":                          {change: func(t *Target) { t.CASecret = "" }, message: "TLS: certificate of an unknown authority"},
		"another name":                              {change: func(t *Target) { t.ServerName = "slack.test" }, message: "TLS: certificate for another name"},
		"no name, so that of the address":           {change: func(t *Target) { t.ServerName = "" }, message: "TLS: certificate for another name"},
		"an expired certificate":                    {expires: -time.Hour, message: "TLS: certificate expired or not yet valid"},
		"no client certificate where one is wanted": {mutual: true, message: "TLS: refused by the connector"},
		"a stranger's client certificate":           {mutual: true, change: func(t *Target) { t.ClientCertSecret = "stranger" }, message: "TLS: refused by the connector"},
	} {
		t.Run(name, func(t *testing.T) {
			expires := test.expires
			if expires == 0 {
				expires = time.Hour
			}
			certificate, key := ca.issue("discord.test", expires)
			pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
			if err != nil {
				t.Fatal(err)
			}
			o := demo(1)
			o.Token = canary
			o.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
			if test.mutual {
				o.TLS.ClientAuth, o.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
				o.TLS.ClientCAs.AddCert(ca.cert)
			}
			b := start(t, setup{Options: o, secrets: secrets, timing: Timing{time.Hour, time.Hour}, config: func(c *Config) {
				withToken(c)
				c.Target.CASecret, c.Target.ServerName = "ca", "discord.test"
				if test.change != nil {
					test.change(&c.Target)
				}
			}}).owned(always)
			if test.message == "" {
				b.registered()
				b.settles(b.apply(v1.StateOpen, "demo:c1"), ok)
				return
			}
			b.ensure()
			b.same(b.untilTrouble(v1.ReasonDialFailed), test.message)
			b.untold()
		})
	}
}
