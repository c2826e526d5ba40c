package mcpl

import (
	"encoding/json"
	"slices"
	"strings"
)

// Capability paths: the closed vocabulary of semantics §12.3.
const (
	CapChannelsRegister    = "channels.register"
	CapChannelsLifecycle   = "channels.lifecycle"
	CapChannelsPublish     = "channels.publish"
	CapChannelsIncoming    = "channels.incoming"
	CapChannelsStreaming   = "channels.streaming"
	CapChannelsAcknowledge = "channels.acknowledge"
	CapChannelsTyping      = "channels.typing"

	CapPushEvents                = "pushEvents"
	CapTools                     = "tools"
	CapModelInfo                 = "modelInfo"
	CapInferenceRequest          = "inferenceRequest"
	CapInferenceRequestStreaming = "inferenceRequest.streaming"
	CapInferenceLifecycle        = "inferenceLifecycle"

	CapBeforeInferenceObserve          = "contextHooks.beforeInference.observe"
	CapBeforeInferenceInjectSystem     = "contextHooks.beforeInference.inject.system"
	CapBeforeInferenceInjectBeforeUser = "contextHooks.beforeInference.inject.beforeUser"
	CapBeforeInferenceInjectAfterUser  = "contextHooks.beforeInference.inject.afterUser"
)

// vocabulary holds every path that can be advertised and granted, sorted.
var vocabulary = []string{
	CapChannelsAcknowledge,
	CapChannelsIncoming,
	CapChannelsLifecycle,
	CapChannelsPublish,
	CapChannelsRegister,
	CapChannelsStreaming,
	CapChannelsTyping,
	CapBeforeInferenceInjectAfterUser,
	CapBeforeInferenceInjectBeforeUser,
	CapBeforeInferenceInjectSystem,
	CapBeforeInferenceObserve,
	CapInferenceLifecycle,
	CapInferenceRequest,
	CapInferenceRequestStreaming,
	CapModelInfo,
	CapPushEvents,
	CapTools,
}

// advertisedPaths walks the capabilities object of an answer to initialize and
// returns the paths it advertises, sorted. `true` at a node advertises all its
// leaves, names outside the vocabulary mint nothing (semantics §12.3, fact 9).
// `tools` is the one path read from the outer, plain MCP capabilities.
func advertisedPaths(mcpl, tools json.RawMessage) []string {
	var paths []string
	for _, path := range vocabulary {
		if path == CapTools {
			if offersTools(tools) {
				paths = append(paths, path)
			}
			continue
		}
		if advertises(mcpl, strings.Split(path, ".")) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func advertises(node json.RawMessage, segments []string) bool {
	for i, segment := range segments {
		node = members(node)[segment]
		if isTrue(node) {
			return true
		}
		// An inferenceRequest that lists its options is advertised itself:
		// the one path of the vocabulary that is a leaf and a parent.
		if i == len(segments)-1 {
			return segment == CapInferenceRequest && isObject(node)
		}
	}
	return false
}
