package main

import (
	"bytes"
	"fmt"
	"log"
	"strings"
	"sync"
	"time"
)

// tell logs what line says every few seconds until stop is called, so that a
// person at the terminal, or a CI system that ends silent jobs, sees life.
func tell(line func() string) (stop func()) {
	const interval = 8 * time.Second
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				log.Print(line())
			}
		}
	}()
	return func() { close(done) }
}

// progress reads what `go build -v` writes to stderr. It counts the lines that
// report work and keeps the others, which are what went wrong.
type progress struct {
	started time.Time

	mu                   sync.Mutex
	unfinished           []byte
	downloaded, compiled int
	others               []string
}

func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unfinished = append(p.unfinished, text...)
	for {
		line, rest, whole := bytes.Cut(p.unfinished, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		p.unfinished = rest
		p.read(string(line))
	}
}

func (p *progress) read(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.downloaded++
	case line != "" && !strings.ContainsAny(line, " \t"): // an import path
		p.compiled++
	default:
		p.others = append(p.others, line)
	}
}

func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := fmt.Sprintf("%s, %d packages compiled", time.Since(p.started).Round(time.Second), p.compiled)
	if p.downloaded > 0 {
		s += fmt.Sprintf(", %d modules downloaded", p.downloaded)
	}
	return s
}

// complaint is what the build said apart from its progress, including a last
// line that it did not get to end.
func (p *progress) complaint() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(append(p.others, string(p.unfinished)), "\n")
}
