package mcpl

import (
	"slices"
	"testing"
)

func TestComputeGrant(t *testing.T) {
	all := slices.Clone(vocabulary)
	channels := []string{
		CapChannelsAcknowledge, CapChannelsIncoming, CapChannelsLifecycle, CapChannelsPublish,
		CapChannelsRegister, CapChannelsStreaming, CapChannelsTyping,
	}
	cases := map[string]struct {
		advertised, deny, want []string
	}{
		"nothing advertised": {},
		"sorted, each once": {
			advertised: []string{"tools", "channels.typing", "tools"},
			want:       []string{"channels.typing", "tools"},
		},
		"outside the vocabulary": {
			advertised: []string{"channels.delete", "channels", "channels.*", "*", "", "toolLifecycle.observe", "scope.elevate", "Tools", "pushEvents"},
			want:       []string{"pushEvents"},
		},
		"denied by default": {
			advertised: []string{CapBeforeInferenceInjectSystem, CapBeforeInferenceInjectAfterUser},
			want:       []string{CapBeforeInferenceInjectAfterUser},
		},
		"an explicit path": {
			advertised: channels, deny: []string{"channels.streaming"},
			want: []string{
				CapChannelsAcknowledge, CapChannelsIncoming, CapChannelsLifecycle, CapChannelsPublish,
				CapChannelsRegister, CapChannelsTyping,
			},
		},
		"a parent covers its subtree": {
			advertised: all, deny: []string{"channels", "contextHooks.beforeInference", "inferenceRequest"},
			want: []string{"inferenceLifecycle", "modelInfo", "pushEvents", "tools"},
		},
		"a star is one segment": {
			advertised: all, deny: []string{"channels.*", "contextHooks.*.inject", "inferenceRequest.*"},
			want: []string{
				CapBeforeInferenceObserve, CapInferenceLifecycle, CapInferenceRequest, CapModelInfo, CapPushEvents, CapTools,
			},
		},
		"a star in front": {
			advertised: channels, deny: []string{"*.register", "*.typing"},
			want: []string{
				CapChannelsAcknowledge, CapChannelsIncoming, CapChannelsLifecycle, CapChannelsPublish, CapChannelsStreaming,
			},
		},
		"a star alone covers everything": {advertised: all, deny: []string{"*"}},
		"a pattern longer than the path covers nothing": {
			advertised: []string{"tools", "channels.register"}, deny: []string{"tools.*", "channels.register.*", "channels.register.x"},
			want: []string{"channels.register", "tools"},
		},
		"a part of a segment is no match": {
			advertised: []string{"channels.register"}, deny: []string{"channel", "channels.reg", "channels.reg*", ""},
			want: []string{"channels.register"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			grant := ComputeGrant(tc.advertised, tc.deny)
			equal(t, grant.Paths(), tc.want)
			equal(t, grant.Empty(), len(tc.want) == 0)
			for _, path := range vocabulary {
				equal(t, grant.Allows(path), slices.Contains(tc.want, path))
			}
		})
	}
}

func TestGrantAllows(t *testing.T) {
	cases := map[string]struct {
		granted string
		path    string
		want    bool
	}{
		"the path itself":               {"channels.register", "channels.register", true},
		"another":                       {"channels.register", "channels.publish", false},
		"a bare parent grants nothing":  {"channels", "channels.register", false},
		"nor does a leaf its parent":    {"channels.register", "channels", false},
		"a star is one segment":         {"channels.*", "channels.register", true},
		"and no more than one":          {"channels.*", "channels.register.x", false},
		"and no less":                   {"channels.*", "channels", false},
		"a star in the middle":          {"contextHooks.*.observe", "contextHooks.beforeInference.observe", true},
		"counts must be equal":          {"*", "channels.register", false},
		"a star alone, one segment":     {"*", "tools", true},
		"a star in the path is no path": {"channels.register", "channels.*", false},
		"case matters":                  {"tools", "Tools", false},
		"nothing":                       {"tools", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			equal(t, NewGrant(tc.granted).Allows(tc.path), tc.want)
		})
	}
}

func TestTheZeroGrantAllowsNothing(t *testing.T) {
	var g Grant
	equal(t, g.Empty(), true)
	equal(t, len(g.Paths()), 0)
	for _, path := range append(slices.Clone(vocabulary), "", "*") {
		equal(t, g.Allows(path), false)
	}
}

func TestAGrantDoesNotChange(t *testing.T) {
	paths := []string{"tools", "pushEvents"}
	g := NewGrant(paths...)
	equal(t, paths, []string{"tools", "pushEvents"})
	paths[0] = "modelInfo"
	g.Paths()[0] = "modelInfo"
	equal(t, g.Paths(), []string{"pushEvents", "tools"})
}

func TestDeniedPaths(t *testing.T) {
	advertised := []string{"tools", "channels.typing", "channels.register", "made.up", CapBeforeInferenceInjectSystem, "channels.typing"}
	equal(t,
		DeniedPaths(advertised, ComputeGrant(advertised, []string{"channels.typing"})),
		[]string{"channels.typing", CapBeforeInferenceInjectSystem})
	equal(t, len(DeniedPaths(nil, Grant{})), 0)
}

func TestTheVocabularyIsSorted(t *testing.T) {
	equal(t, slices.IsSorted(vocabulary), true)
}

func TestInboundCapability(t *testing.T) {
	cases := map[string]struct {
		capability string
		served     bool
	}{
		"channels/register":                {"channels.register", true},
		"channels/changed":                 {"channels.register", true},
		"channels/list":                    {"channels.register", true},
		"channels/incoming":                {"channels.incoming", true},
		"push/event":                       {"pushEvents", true},
		"mcpl/manifestChanged":             {"", true},
		"notifications/tools/list_changed": {"", true},
		"ping":                             {"", true},
		"channels/open":                    {"", false}, // the host's to send
		"featureSets/update":               {"", false},
		"scope/elevate":                    {"", false}, // removed (semantics §12.5)
		"featureSets/changed":              {"", false},
		"model/info":                       {"", false},
		"host/command":                     {"", false}, // fact 27
		"":                                 {"", false},
	}
	for method, tc := range cases {
		capability, served := InboundCapability(method)
		equal(t, capability, tc.capability)
		equal(t, served, tc.served)
	}
	for _, capability := range inboundCapability {
		if capability != "" && !slices.Contains(vocabulary, capability) {
			t.Errorf("%s is not in the vocabulary", capability)
		}
	}
}
