package session

import (
	"net"
	"strings"
	"testing"

	"mcpl.dev/operator/internal/mcpl"
)

func TestDeniedIP(t *testing.T) {
	for name, test := range map[string]struct {
		ips     []string
		allowed []string
		want    string
	}{
		"public addresses":                   {ips: []string{"1.1.1.1", "93.184.216.34", "2606:4700::1111", "172.32.0.1", "100.128.0.1", "11.0.0.1", "64:ff9b::101:101"}},
		"loopback":                           {ips: []string{"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}, want: "a loopback address"},
		"unspecified, which is loopback too": {ips: []string{"0.0.0.0", "::"}, want: "a loopback address"},
		"link-local, the metadata services of clouds included": {
			ips:  []string{"169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "224.0.0.1", "239.1.1.1", "ff02::1", "ff01::1", "ff0e::1"},
			want: "a link-local or multicast address",
		},
		"private": {
			ips: []string{"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd00:ec2::254", "fc00::1", "::ffff:10.0.0.1"}, want: "a private address",
		},
		"shared by carriers, which pods have too": {ips: []string{"100.64.0.1", "100.100.100.200", "100.127.255.255", "::ffff:100.64.0.1"}, want: "a private address"},
		"reserved": {
			ips: []string{"0.1.2.3", "192.0.0.192", "198.18.0.1", "240.0.0.1", "255.255.255.255"}, want: "a reserved address",
		},
		"IPv4 in disguise":         {ips: []string{"64:ff9b:1::1", "2002:7f00:1::", "::7f00:1"}, want: "a reserved address"},
		"loopback through NAT64":   {ips: []string{"64:ff9b::7f00:1"}, want: "a loopback address"},
		"link-local through NAT64": {ips: []string{"64:ff9b::a9fe:a9fe"}, want: "a link-local or multicast address"},
		"an allowed network": {
			ips: []string{"10.1.2.3", "::ffff:10.1.2.3", "127.0.0.1", "fd00::7"}, allowed: []string{"10.0.0.0/8", "127.0.0.1/32", "fd00::/8"},
		},
		"beside an allowed network": {ips: []string{"10.2.0.1"}, allowed: []string{"10.1.0.0/16"}, want: "a private address"},
	} {
		t.Run(name, func(t *testing.T) {
			var networks []*net.IPNet
			for _, cidr := range test.allowed {
				networks = append(networks, network(cidr))
			}
			for _, ip := range test.ips {
				if got := deniedIP(net.ParseIP(ip), networks); got != test.want {
					t.Errorf("%s: %q, want %q", ip, got, test.want)
				}
			}
		})
	}
}

func TestCheckAddress(t *testing.T) {
	d := &NetDialer{AllowedNetworks: []*net.IPNet{network("10.0.0.0/8")}}
	for address, allowed := range map[string]bool{
		"1.1.1.1:443": true, "10.0.0.1:80": true, "[2606:4700::1111]:443": true,
		"127.0.0.1:80": false, "[fe80::1%eth0]:80": false, "[::1]:80": false, "10.0.0.1": false, "localhost:80": false, "": false,
	} {
		if err := d.checkAddress("tcp", address, nil); (err == nil) != allowed {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestTargetURL(t *testing.T) {
	for name, test := range map[string]struct {
		target Target
		want   string
	}{
		"a pod":              {Target{Address: "10.1.2.3:7400", Path: "/mcpl"}, "ws://10.1.2.3:7400/mcpl"},
		"a pod with TLS":     {Target{Address: "10.1.2.3:7400", Path: "/mcpl", TLS: true}, "wss://10.1.2.3:7400/mcpl"},
		"a pod of IPv6":      {Target{Address: "[fd00::7]:7400", Path: "/"}, "ws://[fd00::7]:7400/"},
		"a url":              {Target{URL: "wss://chat.example/mcpl?room=1", TLS: true}, "wss://chat.example/mcpl?room=1"},
		"a url before a pod": {Target{URL: "wss://chat.example/", Address: "10.1.2.3:1"}, "wss://chat.example/"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.target.url()
			if err != nil || got.String() != test.want {
				t.Errorf("%v, %v; want %s", got, err, test.want)
			}
			if test.target.None() {
				t.Error("there is something to dial")
			}
		})
	}
	if _, err := (Target{URL: "wss://chat.example/%zz"}).url(); err == nil {
		t.Error("what is no URL was taken")
	}
	if !(Target{Namespace: "residents", Path: "/mcpl", TokenSecret: "s"}).None() {
		t.Error("there is nothing to dial")
	}
}

func TestNamesInMessages(t *testing.T) {
	const unusual, notPlain = "a channel with an id of unusual length", "a channel whose id is not plain text"
	for id, want := range map[string]string{
		"demo:c1": "demo:c1", "!~": "!~", strings.Repeat("x", 200): strings.Repeat("x", 200),
		"": unusual, strings.Repeat("x", 201): unusual,
		"demo c1": notPlain, "demo\nc1": notPlain, "démo": notPlain, "demo\x7f": notPlain, "\x1b[2J": notPlain,
	} {
		if got := printable(id); got != want {
			t.Errorf("printable(%q) = %q, want %q", id, got, want)
		}
		if got := labelOf(mcpl.Descriptor{ID: id}); got != want {
			t.Errorf("labelOf(%q) = %q, want %q", id, got, want)
		}
	}
	if got := labelOf(mcpl.Descriptor{ID: "demo:c1", Label: "#general"}); got != "#general" {
		t.Errorf("a label is shown as %q", got)
	}
}
