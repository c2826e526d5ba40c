package connector

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// term is a host's term, from Mcpl-Term: <unix seconds>.<transitions>.
type term struct {
	created     uint64
	transitions uint64
}

func parseTerm(s string) (t term, ok bool) {
	created, transitions, found := strings.Cut(s, ".")
	if !found {
		return term{}, false
	}
	var errs [2]error
	t.created, errs[0] = strconv.ParseUint(created, 10, 63)
	t.transitions, errs[1] = strconv.ParseUint(transitions, 10, 63)
	return t, errs[0] == nil && errs[1] == nil
}

func (t term) compare(o term) int {
	return cmp.Or(cmp.Compare(t.created, o.created), cmp.Compare(t.transitions, o.transitions))
}

// holder is the newest host the fence has let in. It is remembered while nobody
// is connected: an older host must stay out even then. Restart forgets it.
type holder struct {
	host string
	term string
}

// admits tells whether a host may take the connection over.
func (h holder) admits(host, presented string) bool {
	t, ok := parseTerm(presented)
	if !ok || host == "" {
		return false
	}
	if h.term == "" {
		return true
	}
	// What is held was admitted, so it can be read.
	held, _ := parseTerm(h.term)
	order := t.compare(held)
	return order > 0 || order == 0 && host == h.host
}

// refuse answers an upgrade that the fence does not admit.
func (h holder) refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	// The peer may be gone, and nothing hangs on the answer.
	_ = json.NewEncoder(w).Encode(map[string]string{"holder": h.host, "term": h.term})
}
