package session

import (
	"net"
	"net/url"

	"k8s.io/apimachinery/pkg/types"
)

// Target is where a connector is and how to reach it. Two targets that are equal are one server
// reached in one way; the secrets themselves are read at each dial.
type Target struct {
	Namespace string
	// Address is host:port of a pod, and PodUID that pod; or URL is set.
	Address string
	PodUID  types.UID
	URL     string
	Path    string

	// TokenSecret and TokenKey name the bearer token; empty for none.
	TokenSecret, TokenKey string

	TLS        bool
	ServerName string
	// CASecret and ClientCertSecret name the Secrets with ca.crt, and with tls.crt and tls.key; empty for none.
	CASecret, ClientCertSecret string
}

// None reports whether there is nothing to dial.
func (t Target) None() bool { return t.Address == "" && t.URL == "" }

// url is what to dial, without a token.
func (t Target) url() (*url.URL, error) {
	if t.URL != "" {
		return url.Parse(t.URL)
	}
	scheme := "ws"
	if t.TLS {
		scheme = "wss"
	}
	return url.Parse(scheme + "://" + t.Address + t.Path)
}

// deniedIP says why an address of a url connector may not be dialled, empty where it may: such a
// url is a tenant's word, and must not lead to what only the manager can reach.
func deniedIP(ip net.IP, allowed []*net.IPNet) string {
	for _, network := range allowed {
		if network.Contains(ip) {
			return ""
		}
	}
	switch {
	case ip.IsLoopback(), ip.IsUnspecified():
		return "a loopback address"
	case ip.IsLinkLocalUnicast(), ip.IsLinkLocalMulticast(), ip.IsMulticast(), ip.IsInterfaceLocalMulticast():
		return "a link-local or multicast address"
	case ip.IsPrivate():
		return "a private address"
	}
	return ""
}
