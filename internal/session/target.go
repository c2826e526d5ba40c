package session

import (
	"net"
	"net/netip"
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
	// TCP says that messages are lines on a bare connection to Address, not frames of a WebSocket.
	TCP bool

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

// deniedNetworks are those besides loopback, link-local, multicast and private ones that no url may
// lead to, and what they are called.
var deniedNetworks = []struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("100.64.0.0/10"), "a private address"}, // pods and services of some clouds
	{netip.MustParsePrefix("0.0.0.0/8"), "a reserved address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address"}, // a metadata service is there, too
	{netip.MustParsePrefix("198.18.0.0/15"), "a reserved address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
	{netip.MustParsePrefix("::/96"), "a reserved address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a reserved address"},
	{netip.MustParsePrefix("2002::/16"), "a reserved address"},
}

// nat64 embeds an IPv4 address in its last four bytes: what counts is where that leads.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

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
	case ip.IsLinkLocalUnicast(), ip.IsMulticast():
		return "a link-local or multicast address"
	case ip.IsPrivate():
		return "a private address"
	}
	addr, _ := netip.AddrFromSlice(ip)
	addr = addr.Unmap()
	if nat64.Contains(addr) {
		return deniedIP(ip[len(ip)-net.IPv4len:], allowed)
	}
	for _, n := range deniedNetworks {
		if n.prefix.Contains(addr) {
			return n.why
		}
	}
	return ""
}
