package admission

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// aged is a cell that says how long ago something was: it is only asked to be there.
const aged = "(an age)"

// condition is the status' condition of a type.
func condition(kind, message string) map[string]any {
	return map[string]any{
		"type": kind, "status": "True", "reason": "Tested", "message": message,
		"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": int64(1),
	}
}

// A column is a name and what it shows, in the order in which kubectl prints them.
type column struct {
	name  string
	shows any
	wide  bool
}

func TestColumns(t *testing.T) {
	for name, tc := range map[string]struct {
		plural, manifest string
		spec, status     edits
		want             []column
	}{
		"a Connector": {
			plural: "connectors", manifest: connector,
			status: set(
				"status.state", "Up", "status.serverID", "discord", "status.sessionGeneration", 3,
				"status.pod", map[string]any{"name": "discord-0", "uid": "1"},
				"status.channels", map[string]any{"registered": int64(9), "open": int64(5), "tunedOut": int64(2), "unsettled": int64(1)},
				"status.conditions", []any{condition("Connected", "not this one"), condition("Ready", "Up.")},
			),
			want: []column{
				{"State", "Up", false}, {"Pod", "discord-0", false}, {"Resident", "scout", false}, {"Channels", 9, false},
				{"Open", 5, false}, {"Unsettled", 1, false}, {"Ready", "True", false}, {"Age", aged, false},
				{"Server-ID", "discord", true}, {"Session", 3, true}, {"Message", "Up.", true},
			},
		},
		"a Channel": {
			plural: "channels", manifest: channel,
			status: set(
				"status.label", "general", "status.desired", "Open", "status.transport", "Open",
				"status.decision", map[string]any{"state": "Open", "source": "AgentTool", "revision": int64(4), "decidedBy": "scout"},
				"status.conditions", []any{condition("Settled", "not this one"), condition("Ready", "Settled.")},
			),
			want: []column{
				{"Connector", "discord", false}, {"Channel", "general", false}, {"Desired", "Open", false},
				{"Transport", "Open", false}, {"Source", "AgentTool", false}, {"Ready", "True", false}, {"Age", aged, false},
				{"Channel-ID", "discord:111:222", true}, {"By", "scout", true}, {"Revision", 4, true}, {"Message", "Settled.", true},
			},
		},
		"a ChannelDecision by name": {
			plural: "channeldecisions", manifest: decision,
			status: set(
				"status.result", "Opened", "status.cause", "NotFound", "status.revision", 4,
				"status.conditions", []any{condition("Recorded", "not this one"), condition("Complete", "Opened.")},
			),
			want: decisionColumns("discord-general"),
		},
		"a ChannelDecision by pair": {
			plural: "channeldecisions", manifest: decision,
			spec: set("spec.channelRef", map[string]any{"serverID": "discord", "channelID": "discord:111:222"}),
			status: set(
				"status.result", "Opened", "status.cause", "NotFound", "status.revision", 4,
				"status.conditions", []any{condition("Complete", "Opened.")},
			),
			want: decisionColumns("discord:111:222"),
		},
		"a ChannelRecord": {
			plural: "channelrecords", manifest: record,
			spec: set(
				"labelSightings.last", "general",
				"record.decisionRef", map[string]any{"kind": "ChannelDecision", "name": "scout-closes", "uid": "1"},
			),
			want: []column{
				{"Server-ID", "discord", false}, {"Channel", "general", false}, {"State", "Closed", false},
				{"Source", "AgentTool", false}, {"By", "scout", false}, {"Revision", 3, false}, {"Decided", aged, false},
				{"Channel-ID", "discord:111:222", true}, {"Decision", "scout-closes", true},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(tc.manifest).with(set("metadata.namespace", newNamespace(t)), tc.spec)
			if err := admin.Create(t.Context(), o.Unstructured); err != nil {
				t.Fatal(err)
			}
			if tc.status != nil {
				if err := admin.Status().Update(t.Context(), o.with(tc.status).Unstructured); err != nil {
					t.Fatal(err)
				}
			}
			got := printed(t, o.GetNamespace(), tc.plural, o.GetName())
			want := append([]column{{"Name", o.GetName(), false}}, tc.want...)
			if len(got) != len(want) {
				t.Fatalf("the columns are %v, want %v", got, want)
			}
			for i := range want {
				cell := want[i].shows
				if cell == aged && got[i].shows != nil && got[i].shows != "<unknown>" {
					cell = got[i].shows
				}
				if fmt.Sprint(got[i]) != fmt.Sprint(column{want[i].name, cell, want[i].wide}) {
					t.Errorf("column %d is %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

func decisionColumns(channel string) []column {
	return []column{
		{"Channel", channel, false}, {"Decision", "Open", false}, {"Source", "AgentTool", false}, {"By", "scout", false},
		{"Result", "Opened", false}, {"Cause", "NotFound", false}, {"Age", aged, false},
		{"Revision", 4, true}, {"Message", "Opened.", true},
	}
}

// printed is what kubectl would print of an object: the server renders it.
func printed(t *testing.T, namespace, plural, name string) []column {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(adminConfig)
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := rest.DefaultServerUrlFor(adminConfig)
	if err != nil {
		t.Fatal(err)
	}
	server.Path = fmt.Sprintf("/apis/mcpl.dev/v1alpha1/namespaces/%s/%s/%s", namespace, plural, name)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	table := metav1.Table{}
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows in %s", len(table.Rows), body)
	}
	var columns []column
	for i, definition := range table.ColumnDefinitions {
		columns = append(columns, column{definition.Name, table.Rows[0].Cells[i], definition.Priority > 0})
	}
	return columns
}
