package connector

import (
	"crypto/tls"
	"time"
)

// Dialect is the generation of MCPL a connector speaks.
type Dialect string

const (
	// Dialect05 keys featureSets by name, advertises channels leaf by leaf, says
	// how it takes a policy, and refuses what is not granted with -32002.
	Dialect05 Dialect = "0.5"
	// Dialect04 lists featureSets, advertises `channels: true`, answers a policy
	// with a bare {accepted:true}, enforces no grant, and opens the first channel
	// of the type when it does not find the one that was asked for.
	Dialect04 Dialect = "0.4"
)

// Options say what a connector is from its start to its end. What may change
// meanwhile is in Behavior. The zero value serves no channels, to anybody, on a
// free port of 127.0.0.1.
type Options struct {
	// Listen is where MCPL is served. Default: 127.0.0.1:0.
	Listen string
	// Control is where the control API is served, without authentication, so it
	// belongs on a loopback address. Default: not at all.
	Control string
	// Token is asked of every host, as `Authorization: Bearer` or `?token=`.
	// Default: none is.
	Token string
	// TLS makes the connector speak wss. Default: CertFile and KeyFile, or ws.
	TLS *tls.Config
	// CertFile and KeyFile are PEM files; both or neither.
	CertFile, KeyFile string

	// Dialect defaults to Dialect05.
	Dialect Dialect
	// ServerName names the connector, its feature sets and tools. Default: demo.
	ServerName string
	// Channels are served from the start, in this order. Descriptors without an
	// id and repeated ones are submitted as they are.
	Channels []Descriptor
	// Tools are listed by tools/list. Default: a send and a read tool. An empty
	// slice that is not nil advertises no tools.
	Tools []Tool
	// Manifest is advertised as experimental.mcpl. Default: that of the dialect.
	Manifest Manifest

	// Fence makes hosts present Mcpl-Term and Mcpl-Host, as the bridge does.
	Fence bool
	// ReplaceConnection lets a second connection take the place of the first
	// where there is no fence. Default: the second is accepted and never answered.
	ReplaceConnection bool

	// Behavior is how it behaves at first; see SetBehavior.
	Behavior Behavior

	// JournalKeep is how many entries are kept, oldest dropped first. Default:
	// 100,000. Negative: none, only the counts.
	JournalKeep int
	// JournalBytes bounds the params or result kept with one entry; longer ones
	// are left out. Default: 64 KiB.
	JournalBytes int
	// MaxMessageBytes bounds one inbound message. Default: 32 MiB.
	MaxMessageBytes int64

	// Now and After are the clock. Default: the system's.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
}

func (o Options) withDefaults() Options {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Dialect == "" {
		o.Dialect = Dialect05
	}
	if o.ServerName == "" {
		o.ServerName = "demo"
	}
	if o.Tools == nil {
		o.Tools = defaultTools()
	}
	if o.Manifest == nil {
		o.Manifest = DefaultManifest(o.Dialect, o.ServerName)
	}
	if o.JournalKeep == 0 {
		o.JournalKeep = 100_000
	}
	if o.JournalBytes <= 0 {
		o.JournalBytes = 64 << 10
	}
	if o.MaxMessageBytes <= 0 {
		o.MaxMessageBytes = 32 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	return o
}
