package session

import (
	"encoding/json"
	"errors"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/mcpl"
)

// here is the footing that every request of these tests was sent on.
var here = footing{entry: 3, connection: 2, lifecycle: true, descriptor: mcpl.Descriptor{
	ID: "demo:c1", Type: "demo", Label: "#c1", Address: json.RawMessage(`{"channelId":"c1","guild":"g"}`),
}}

// but is here, changed.
func but(changes ...func(*footing)) footing {
	f := here
	for _, change := range changes {
		change(&f)
	}
	return f
}

func reconnected(f *footing) { f.connection = 9 }
func disconnected(f *footing) {
	f.connection, f.lifecycle = 0, false
}
func replaced(f *footing)       { f.entry = 8 }
func gone(f *footing)           { f.entry, f.descriptor = 0, mcpl.Descriptor{} }
func moved(f *footing)          { f.descriptor.Address = json.RawMessage(`{"channelId":"c1","guild":"other"}`) }
func retyped(f *footing)        { f.descriptor.Type = "chat" }
func reordered(f *footing)      { f.descriptor.Address = json.RawMessage(`{"guild":"g","channelId":"c1"}`) }
func relabelled(f *footing)     { f.descriptor.Label = "#renamed" }
func wishingOpen(f *footing)    { f.descriptor.InitiallyOpen = true }
func ungranted(f *footing)      { f.lifecycle = false }
func addressless(f *footing)    { f.descriptor.Address = nil }
func nullAddress(f *footing)    { f.descriptor.Address = json.RawMessage("null") }
func failing() receipt          { return receipt{err: errors.New("no")} }
func succeeding() receipt       { return receipt{} }
func substituting() receipt     { return receipt{substituted: true} }
func opening(f footing) request { return request{footing: f, open: true} }
func closing(f footing) request { return request{footing: f} }

func TestReceive(t *testing.T) {
	const unchanged = v1.TransportState("")
	for name, test := range map[string]struct {
		sent  request
		r     receipt
		now   footing
		wants bool // that it is open
		t     v1.TransportState
		step  step
	}{
		"§8.4 an open's receipt":                             {opening(here), succeeding(), here, true, v1.TransportOpen, finished},
		"§8.4 a close's receipt":                             {closing(here), succeeding(), here, false, v1.TransportClosed, finished},
		"F01 a close's receipt, open decided meanwhile":      {closing(here), succeeding(), here, true, v1.TransportClosed, again},
		"F02 an open's receipt, closed decided meanwhile":    {opening(here), succeeding(), here, false, v1.TransportOpen, again},
		"F03 success, registered again":                      {closing(here), succeeding(), but(replaced), true, unchanged, again},
		"F03 success, registered again with another target":  {closing(here), succeeding(), but(replaced, moved), true, unchanged, again},
		"F04 success, removed":                               {opening(here), succeeding(), but(gone), true, unchanged, again},
		"F07 success, another address":                       {opening(here), succeeding(), but(moved), true, v1.TransportUnconfirmed, again},
		"F07 success, another type":                          {opening(here), succeeding(), but(retyped), true, v1.TransportUnconfirmed, again},
		"F07 success, another address and decision":          {opening(here), succeeding(), but(moved), false, v1.TransportUnconfirmed, again},
		"F07 success, another label":                         {opening(here), succeeding(), but(relabelled), true, v1.TransportOpen, finished},
		"F07 success, the same address written differently":  {opening(here), succeeding(), but(reordered), true, v1.TransportOpen, finished},
		"success, null for no address":                       {opening(but(addressless)), succeeding(), but(nullAddress), true, v1.TransportOpen, finished},
		"success, another wish of the connector":             {opening(here), succeeding(), but(wishingOpen), true, v1.TransportOpen, finished},
		"§8.4 success, lifecycle lost":                       {opening(here), succeeding(), but(ungranted), true, v1.TransportOpen, finished},
		"§8.2 success, reconnected":                          {opening(here), succeeding(), but(reconnected), true, v1.TransportUnconfirmed, again},
		"§8.2 success, disconnected":                         {opening(here), succeeding(), but(disconnected), true, v1.TransportUnconfirmed, again},
		"success, reconnected and registered again":          {opening(here), succeeding(), but(reconnected, replaced), true, unchanged, again},
		"§8.4 a failed open":                                 {opening(here), failing(), here, true, unchanged, failed},
		"§8.4 a failed close":                                {closing(here), failing(), here, false, unchanged, failed},
		"§8.2 a plain failure is not tried again":            {closing(here), failing(), here, true, unchanged, failed},
		"failure, another label":                             {opening(here), failing(), but(relabelled), true, unchanged, failed},
		"§8.4 failure, lifecycle lost":                       {opening(here), failing(), but(ungranted), true, unchanged, failed},
		"F12 failure, another address":                       {opening(here), failing(), but(moved), true, v1.TransportUnconfirmed, failed},
		"F11 failure, reconnected":                           {opening(here), failing(), but(reconnected), true, v1.TransportUnconfirmed, failed},
		"I03 failure, disconnected":                          {opening(here), failing(), but(disconnected), true, v1.TransportUnconfirmed, failed},
		"failure, registered again":                          {opening(here), failing(), but(replaced), true, unchanged, failed},
		"F11 failure, reconnected and registered again":      {opening(here), failing(), but(reconnected, replaced), true, unchanged, failed},
		"failure, removed":                                   {opening(here), failing(), but(gone), true, unchanged, failed},
		"F13 a substituted answer":                           {opening(here), substituting(), here, true, v1.TransportUnconfirmed, failed},
		"F13 a substituted answer, closed decided meanwhile": {opening(here), substituting(), here, false, v1.TransportUnconfirmed, failed},
		"F17 a substituted answer, another address":          {opening(here), substituting(), but(moved), true, v1.TransportUnconfirmed, again},
		"F17 a substituted answer, reconnected":              {opening(here), substituting(), but(reconnected), true, v1.TransportUnconfirmed, again},
		"F17 a substituted answer, registered again":         {opening(here), substituting(), but(replaced), true, unchanged, again},
		"a substituted answer, removed":                      {opening(here), substituting(), but(gone), true, unchanged, again},
	} {
		t.Run(name, func(t *testing.T) {
			transport, step := receive(test.sent, test.r, test.now, test.wants)
			if transport != test.t || step != test.step {
				t.Errorf("T=%q, step %d; want T=%q, step %d", transport, step, test.t, test.step)
			}
		})
	}
}

func TestObstacle(t *testing.T) {
	for name, test := range map[string]struct {
		attempts int
		now      footing
		want     v1.Cause
	}{
		"none":                             {0, here, ""},
		"none for the fifth attempt":       {4, here, ""},
		"F08 the sixth attempt":            {5, here, v1.CauseDidNotConverge},
		"removed":                          {0, but(gone), v1.CauseRegistrationGone},
		"removed and disconnected":         {5, but(gone, disconnected), v1.CauseRegistrationGone},
		"disconnected":                     {0, but(disconnected), v1.CauseConnectorMissing},
		"disconnected after five attempts": {5, but(disconnected), v1.CauseConnectorMissing},
		"no lifecycle":                     {0, but(ungranted), v1.CauseNotPermitted},
		"no lifecycle after five attempts": {5, but(ungranted), v1.CauseNotPermitted},
	} {
		t.Run(name, func(t *testing.T) {
			if got := obstacle(test.attempts, test.now); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestOutcomeOf(t *testing.T) {
	for name, test := range map[string]struct {
		r    receipt
		want decision.Outcome
	}{
		"an error": {
			receipt{err: &mcpl.CallError{Outcome: mcpl.ErrorResponse, Code: -32024, Message: "no such place"}},
			decision.Outcome{Failure: v1.CauseConnectorFailed, Detail: "no such place (-32024)"},
		},
		"no answer": {
			receipt{err: &mcpl.CallError{Outcome: mcpl.NoResponse, Message: "timed out"}},
			decision.Outcome{Failure: v1.CauseConnectorFailed, Unknown: true},
		},
		"not sent": {
			receipt{err: &mcpl.CallError{Outcome: mcpl.NotSent, Message: "connection lost"}},
			decision.Outcome{Failure: v1.CauseConnectorMissing},
		},
		"unreadable": {
			receipt{err: errors.New("unexpected end of JSON input")},
			decision.Outcome{Failure: v1.CauseConnectorFailed, Detail: "its answer could not be read"},
		},
		"substituted": {substituting(), decision.Outcome{Failure: v1.CauseSubstituted}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(test.r); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
