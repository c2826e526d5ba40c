package connector

import (
	"encoding/json"
	"testing"
)

// into reads a message's result.
func into[T any](t *testing.T, m message) T {
	t.Helper()
	var v T
	if m.Error != nil {
		t.Fatalf("want a result, got %v", m.Error)
	}
	if err := json.Unmarshal(m.Result, &v); err != nil {
		t.Fatalf("read %s: %v", m.Result, err)
	}
	return v
}

type initialized struct {
	Capabilities struct {
		Tools        *struct{ ListChanged bool }
		Experimental *struct {
			MCPL struct {
				Version     string
				Channels    json.RawMessage
				FeatureSets json.RawMessage
			}
		}
	}
}

func TestHandshake(t *testing.T) {
	tests := map[string]struct {
		dialect      Dialect
		channels     string
		arrayOfSets  bool
		policyAnswer string
	}{
		"0.5": {
			dialect:      Dialect05,
			channels:     `{"acknowledge":true,"incoming":true,"lifecycle":true,"publish":true,"register":true,"typing":true}`,
			policyAnswer: `{"accepted":true,"mode":"full","notes":[],"unavailableFeatures":[]}`,
		},
		"0.4": {
			dialect:      Dialect04,
			channels:     `true`,
			arrayOfSets:  true,
			policyAnswer: `{"accepted":true}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t, Options{Dialect: test.dialect, Channels: Generate("demo", 2)})
			h := dial(t, c)
			mcpl := into[initialized](t, h.initialize()).Capabilities.Experimental.MCPL
			if mcpl.Version != string(test.dialect) {
				t.Errorf("version %s", mcpl.Version)
			}
			if string(mcpl.Channels) != test.channels {
				t.Errorf("channels: %s", mcpl.Channels)
			}
			if got := mcpl.FeatureSets[0] == '['; got != test.arrayOfSets {
				t.Errorf("featureSets: %s", mcpl.FeatureSets)
			}
			h.initialized()
			if m := h.grant(everything...); string(m.Result) != test.policyAnswer {
				t.Errorf("policy answer: %s", m.Result)
			}
			if test.dialect == Dialect05 {
				if m := h.next(); m.Method != "notifications/tools/list_changed" {
					t.Errorf("want news of the tools, got %s", m.Method)
				}
			}
			register := h.next()
			if register.Method != "channels/register" || string(register.ID) != "1" {
				t.Errorf("want channels/register with id 1, got %s with %s", register.Method, register.ID)
			}
			ctx := testContext(t)
			if err := c.WaitRegistered(ctx); err != nil {
				t.Fatal(err)
			}
			want := []string{"initialize", "notifications/initialized", "featureSets/update", "channels/register"}
			var got []string
			for _, e := range c.Entries(Filter{Direction: In}) {
				if e.Kind != Connect {
					got = append(got, e.Method)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("want %q, got %q", want, got)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("want %q, got %q", want, got)
				}
			}
			if vs := c.Verdicts(); len(vs) != 2 || !vs[0].Accepted {
				t.Errorf("verdicts: %v", vs)
			}
			if vs := c.Violations(); len(vs) > 0 {
				t.Errorf("violations: %v", vs)
			}
		})
	}
}
