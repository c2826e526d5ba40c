package bench

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Request is a kind of request to the API server.
type Request struct {
	// Verb is get, list, watch, create, update, patch or delete.
	Verb string
	// Resource is the resource, with its subresource if it is about one: channels/status.
	Resource string
	// Refused is the status of an answer that was an error, -1 where there was no answer.
	Refused int
}

// String is the request as the table shows it.
func (r Request) String() string {
	if r.Refused != 0 {
		return fmt.Sprintf("%s %s (refused: %d)", r.Verb, r.Resource, r.Refused)
	}
	return r.Verb + " " + r.Resource
}

func (r Request) writes() bool { return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" }

// aside reports whether a request is counted apart: an operator at rest renews its Lease, and an
// Event is a message to people.
func (r Request) aside() bool { return r.Resource == "leases" || r.Resource == "events" }

// Tally counts the requests that go through it.
type Tally struct {
	mu     sync.Mutex
	counts Requests
}

// Wrap has the requests of a client counted.
func (t *Tally) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		// It is counted before it is sent: what others see of it must have been counted.
		request := requestOf(r)
		t.count(request, 1)
		response, err := next.RoundTrip(r)
		refused := request
		switch {
		case err != nil:
			refused.Refused = -1
		case response.StatusCode >= http.StatusBadRequest:
			refused.Refused = response.StatusCode
		default:
			return response, err
		}
		t.count(refused, 1)
		t.count(request, -1)
		return response, err
	})
}

func (t *Tally) count(r Request, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = Requests{}
	}
	t.counts[r] += n
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// requestOf reads /api/v1/… and /apis/GROUP/VERSION/… [namespaces/NAME/] RESOURCE [/NAME [/SUBRESOURCE]].
func requestOf(r *http.Request) Request {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case path[0] == "api" && len(path) > 2:
		path = path[2:]
	case path[0] == "apis" && len(path) > 3:
		path = path[3:]
	default:
		return Request{Verb: "get", Resource: "discovery"}
	}
	if path[0] == "namespaces" && len(path) > 2 {
		path = path[2:]
	}
	request := Request{Resource: path[0]}
	if len(path) > 2 {
		request.Resource += "/" + path[2]
	}
	switch r.Method {
	case http.MethodPost:
		request.Verb = "create"
	case http.MethodPut:
		request.Verb = "update"
	case http.MethodPatch, http.MethodDelete:
		request.Verb = strings.ToLower(r.Method)
	case http.MethodGet:
		switch {
		case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
			request.Verb = "watch"
		case len(path) > 1:
			request.Verb = "get"
		default:
			request.Verb = "list"
		}
	}
	return request
}

// Requests are how many there were of each kind.
type Requests map[Request]int

// Writes to a resource and its subresources, of every resource if it is "", without Leases and Events.
func (c Requests) Writes(resource string) int {
	n := 0
	for request, count := range c {
		name, _, _ := strings.Cut(request.Resource, "/")
		if request.writes() && !request.aside() && (resource == "" || resource == name) {
			n += count
		}
	}
	return n
}

// Events are the writes of Events.
func (c Requests) Events() int {
	n := 0
	for request, count := range c {
		if request.writes() && request.Resource == "events" {
			n += count
		}
	}
	return n
}

// String lists the requests but those that only watch, most frequent first.
func (c Requests) String() string {
	kinds := slices.SortedFunc(maps.Keys(c), func(a, b Request) int {
		if n := c[b] - c[a]; n != 0 {
			return n
		}
		return strings.Compare(a.String(), b.String())
	})
	var parts []string
	for _, kind := range kinds {
		if kind.Resource != "leases" && kind.Verb != "watch" {
			parts = append(parts, fmt.Sprintf("%d %s", c[kind], kind))
		}
	}
	return strings.Join(parts, ", ")
}

// Sample is what had been counted at one moment, or between two.
type Sample struct {
	Requests Requests
	// Reconciles are those of each controller, and Failed those of them that ended in an error.
	Reconciles map[string]int
	Failed     int
}

// sample reads the counts. Reconciliations are the process's: one manager runs in it at a time.
func sample(t *Tally) (Sample, error) {
	t.mu.Lock()
	s := Sample{Requests: maps.Clone(t.counts), Reconciles: map[string]int{}}
	t.mu.Unlock()
	families, err := metrics.Registry.Gather()
	if err != nil {
		return s, fmt.Errorf("reading controller-runtime's metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			n := int(metric.GetCounter().GetValue())
			for _, label := range metric.GetLabel() {
				switch {
				case label.GetName() == "controller":
					s.Reconciles[label.GetValue()] += n
				case label.GetName() == "result" && label.GetValue() == "error":
					s.Failed += n
				}
			}
		}
	}
	return s, nil
}

// since is what was counted between an earlier sample and this one.
func (s Sample) since(earlier Sample) Sample {
	d := Sample{Requests: Requests{}, Reconciles: map[string]int{}, Failed: s.Failed - earlier.Failed}
	for request, n := range s.Requests {
		if n -= earlier.Requests[request]; n > 0 {
			d.Requests[request] = n
		}
	}
	for controller, n := range s.Reconciles {
		if n -= earlier.Reconciles[controller]; n > 0 {
			d.Reconciles[controller] = n
		}
	}
	return d
}

// AllReconciles are those of all controllers.
func (s Sample) AllReconciles() int {
	n := 0
	for _, count := range s.Reconciles {
		n += count
	}
	return n
}
