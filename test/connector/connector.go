package connector

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
)

// Path is where MCPL is served.
const Path = "/mcpl"

// Connector is a running connector. Its methods may be called from anywhere.
type Connector struct {
	o       Options
	tls     *tls.Config
	bell    bell
	journal *journal

	addr    string
	reserve io.Closer
	server  *http.Server
	control *controlServer // nil without Options.Control

	life context.Context // ends when Close begins
	kill context.CancelFunc
	wg   sync.WaitGroup
	stop func() bool // detaches it from Start's context

	frozen *freezer

	mu         sync.Mutex
	closed     bool
	listener   net.Listener // nil while paused
	sockets    map[*socket]struct{}
	behavior   Behavior
	manifest   Manifest
	rules      rules
	gates      map[string]*gate
	channels   []*channel
	open       map[string]bool
	verdicts   []Verdict
	violations []Violation
	conns      int       // connections so far
	current    *hostConn // the one that is served
	holder     holder    // what the fence remembers
	messages   int       // ids given out
}

// ErrClosed is the error of what was waiting when the connector was closed.
var ErrClosed = errors.New("the connector has been closed")

// Start serves a connector until Close, or until ctx ends.
func Start(ctx context.Context, o Options) (*Connector, error) {
	o = o.withDefaults()
	config, err := o.tlsConfig()
	if err != nil {
		return nil, err
	}
	c := &Connector{
		o:        o,
		tls:      config,
		frozen:   newFreezer(),
		sockets:  make(map[*socket]struct{}),
		behavior: o.Behavior,
		manifest: maps.Clone(o.Manifest),
		gates:    make(map[string]*gate),
		open:     make(map[string]bool),
	}
	c.journal = newJournal(o, &c.bell)
	for _, d := range o.Channels {
		c.channels = append(c.channels, &channel{Descriptor: d})
	}
	c.life, c.kill = context.WithCancel(context.WithoutCancel(ctx))
	c.server = &http.Server{
		Handler:     http.HandlerFunc(c.serveHTTP),
		ConnContext: withSocket,
		ConnState:   c.watchProbes,
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	if c.addr, c.reserve, err = reservePort(ctx, o.Listen); err != nil {
		c.kill()
		return nil, err
	}
	if err = c.Resume(ctx); err == nil && o.Control != "" {
		c.control, err = c.serveControl(ctx, o.Control)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.stop = context.AfterFunc(ctx, func() { _ = c.shutDown() })
	return c, nil
}

func (o Options) tlsConfig() (*tls.Config, error) {
	if o.TLS != nil || o.CertFile == "" && o.KeyFile == "" {
		return o.TLS, nil
	}
	cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("give CertFile and KeyFile a matching pair of PEM files: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// Close cuts all connections and waits until all that the connector runs has
// ended. It may be called again.
func (c *Connector) Close() error {
	if c.stop != nil {
		c.stop()
	}
	err := c.shutDown()
	c.wg.Wait()
	return err
}

func (c *Connector) shutDown() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.kill()
	if c.current != nil {
		c.current.detach("the connector was closed")
	}
	sockets := slices.Collect(maps.Keys(c.sockets))
	c.mu.Unlock()

	err := errors.Join(c.reserve.Close(), c.server.Close())
	if c.control != nil {
		err = errors.Join(err, c.control.server.Close())
	}
	for _, s := range sockets {
		_ = s.Close() // a peer that was faster is no failure
	}
	return err
}

// start runs f in a goroutine that Close waits for, unless Close has begun. c.mu
// is held.
func (c *Connector) start(f func()) {
	if !c.closed {
		c.wg.Go(f)
	}
}

// Addr is the host:port of MCPL. It stays the same over Pause and Restart.
func (c *Connector) Addr() string { return c.addr }

// URL is what a host dials: ws:// or wss://, with Path and without the token.
func (c *Connector) URL() string {
	scheme := "ws"
	if c.tls != nil {
		scheme = "wss"
	}
	return scheme + "://" + c.addr + Path
}

// ControlURL is the root of the control API, "" if there is none.
func (c *Connector) ControlURL() string {
	if c.control == nil {
		return ""
	}
	return "http://" + c.control.addr
}

// Ready is what the program prints, as one line of JSON, when it listens.
type Ready struct {
	Addr    string `json:"addr"`
	URL     string `json:"url"`
	Control string `json:"control,omitempty"`
}

// Ready returns where the connector is reached.
func (c *Connector) Ready() Ready {
	return Ready{Addr: c.Addr(), URL: c.URL(), Control: c.ControlURL()}
}

// Status is what a connector is doing.
type Status struct {
	// Connected says that a host is being served; what follows is about it.
	Connected bool `json:"connected"`
	// Conn is its number, as in the journal.
	Conn int `json:"conn,omitempty"`
	// Host and Term are its Mcpl-Host and Mcpl-Term.
	Host string `json:"host,omitempty"`
	Term string `json:"term,omitempty"`
	// Initialized is set by notifications/initialized.
	Initialized bool `json:"initialized"`
	// Granted is what the last policy granted, sorted; nil before there is one.
	Granted []string `json:"granted,omitempty"`
	// Registered is set by the answer to channels/register.
	Registered bool `json:"registered"`
	// Unanswered is how many of the connector's requests the host has not
	// answered. It answers every one, sooner or later.
	Unanswered int `json:"unanswered"`
	// Connections is how many there were so far, served or not.
	Connections int `json:"connections"`
}

// Status returns what the connector is doing.
func (c *Connector) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Connections: c.conns}
	if n := c.current; n != nil {
		s.Connected, s.Conn = true, n.number
		s.Host, s.Term = n.host, n.term
		s.Initialized = n.phase > phaseGap
		s.Registered = n.registered
		s.Unanswered = len(n.pending)
		if n.grant.known {
			s.Granted = slices.Sorted(maps.Keys(n.grant.paths))
		}
	}
	return s
}
