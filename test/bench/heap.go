package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mcpl.dev/operator/test/cluster"
)

// process is the manager as a process of its own, so that what it keeps in memory is nobody else's.
type process struct {
	dir     string
	cmd     *exec.Cmd
	metrics string
}

// startProcess builds the manager and runs it for the fleet, in place of one in this process.
func (f *Fleet) startProcess(ctx context.Context) (*process, error) {
	dir, err := os.MkdirTemp("", "mcpl-bench-")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir}
	if err := p.start(ctx, f); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	f.stop = p.stop
	return p, nil
}

func (p *process) start(ctx context.Context, f *Fleet) error {
	binary := filepath.Join(p.dir, "manager")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/manager")
	build.Dir = cluster.Root()
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the manager: %w: %s", err, out)
	}
	kubeconfig, err := f.lab.Cluster.ManagerKubeconfig()
	if err != nil {
		return err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(p.dir, "manager.log"))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own descriptor
	p.metrics = "http://" + address + "/metrics"
	p.cmd = exec.Command(binary, "--kubeconfig", kubeconfig, "--namespace", f.namespace,
		"--leader-election-namespace", "mcpl-system", "--leader-election-name", f.namespace,
		"--metrics-bind-address", address, "--metrics-insecure", "--health-probe-bind-address", "0")
	// It collects at a tenth of growth instead of at twice the size: what lives is the same, and is
	// known sooner, since being asked for metrics is enough to make it collect.
	p.cmd.Env = append(os.Environ(), "GOGC=10")
	p.cmd.Stdout, p.cmd.Stderr = log, log
	return p.cmd.Start()
}

func (p *process) stop() error {
	if p.cmd != nil && p.cmd.Process != nil {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_ = p.cmd.Wait()                          // how it ended does not matter any more
	}
	return os.RemoveAll(p.dir)
}

// freeAddress is an address of this machine on which nothing listens.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// The process's metrics that are read.
const (
	metricLive       = "go_gc_heap_live_bytes"
	metricCycles     = "go_gc_cycles_total_gc_cycles_total"
	metricReconciles = "controller_runtime_reconcile_total"
)

// liveHeap is how many bytes of the heap are in use: the least that any of some collections found
// alive, while the process did nothing but answer to us.
func (p *process) liveHeap(ctx context.Context) (int64, error) {
	if err := p.awaitQuiet(ctx); err != nil {
		return 0, err
	}
	// Two collections empty what is pooled.
	const emptied, enough = 3, 8
	first, least := math.Inf(1), math.Inf(1)
	err := eventually(ctx, "the manager has collected its garbage a few times", func(ctx context.Context) (bool, error) {
		m, err := p.scrape(ctx)
		if err != nil {
			return false, err
		}
		first = min(first, m[metricCycles])
		collected := m[metricCycles] - first
		if collected >= emptied {
			least = min(least, m[metricLive])
		}
		return collected >= enough, nil
	})
	return int64(least), err
}

// awaitQuiet waits until nothing has been reconciled for a while.
func (p *process) awaitQuiet(ctx context.Context) error {
	last, since := -1.0, time.Now()
	return eventually(ctx, "the manager reconciles nothing any more", func(ctx context.Context) (bool, error) {
		m, err := p.scrape(ctx)
		if m[metricReconciles] != last {
			last, since = m[metricReconciles], time.Now()
		}
		return time.Since(since) >= quiet, err
	})
}

// scrape reads the process's metrics, those of one name added up.
func (p *process) scrape(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() // nothing depends on how it closes
	sums := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := lines.Text()
		name := line[:max(0, strings.IndexAny(line+" ", "{ "))]
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err == nil && !strings.HasPrefix(line, "#") {
			sums[name] += value
		}
	}
	return sums, lines.Err()
}
