package mcpl

import (
	"encoding/json"
	"time"
)

const manifestTimeout = 15 * time.Second

// FetchManifest asks the connector for its manifest, 15 s. It does not block;
// ParseManifest reads the result. A call that fails changes nothing: a connector
// that does not serve the method answers CodeMethodNotFound, and that is no
// fault of the connection (semantics §12.7, fact 17).
func FetchManifest(c *Conn) *Call {
	return c.Start(MethodManifest, struct{}{}, manifestTimeout)
}

// ParseManifest returns the manifest that a FetchManifest brought, as sent. It
// is complete, of the same shape as the one of the handshake: what it does not
// advertise is withdrawn. It fails with ErrMalformedAnswer for what is no object
// and with ErrManifestTooBig over 256 KiB; both change nothing.
func ParseManifest(result json.RawMessage) (json.RawMessage, error) {
	switch {
	case !isObject(result):
		return nil, ErrMalformedAnswer
	case len(result) > maxManifestBytes:
		return nil, ErrManifestTooBig
	}
	return result, nil
}

// Advertised returns the capability paths that a manifest offers, sorted
// (semantics §12.3). tools is InitializeResult.Tools: `tools` is not in the
// manifest but in the answer to initialize, and stays what it was there.
func Advertised(manifest json.RawMessage, tools bool) []string {
	var outer json.RawMessage
	if tools {
		outer = json.RawMessage(`true`)
	}
	return advertisedPaths(manifest, outer)
}

// offersTools reads `tools` of the outer, plain MCP capabilities.
func offersTools(tools json.RawMessage) bool { return isObject(tools) || isTrue(tools) }

// keptManifest returns the manifest of a handshake as far as it is kept.
func keptManifest(mcpl json.RawMessage) json.RawMessage {
	manifest, err := ParseManifest(mcpl)
	if err != nil {
		return nil
	}
	return manifest
}
