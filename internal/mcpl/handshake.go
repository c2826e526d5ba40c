package mcpl

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

const (
	protocolVersion = "2024-11-05"
	mcplVersion     = "0.5"

	initializeTimeout = 30 * time.Second
	policyTimeout     = 15 * time.Second

	maxNameBytes = 128 // of names and versions taken from a connector
	maxNames     = 256 // of feature sets and notes
)

// ErrMalformedAnswer is returned for a result of the wrong shape.
var ErrMalformedAnswer = errors.New("malformed answer")

// Implementation names a program.
type Implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// InitializeResult is what a connector said of itself.
type InitializeResult struct {
	// ServerInfo is sanitised, each part at most 128 bytes.
	ServerInfo Implementation
	// IsMCPL is false for a plain MCP server: it has no channels, and no policy
	// is negotiated with it.
	IsMCPL bool
	// MCPLVersion is as sent, "0.4" or "0.5" so far. Nothing depends on it
	// (fact 10).
	MCPLVersion string
	// Advertised are the capability paths it offers, sorted (semantics §12.3).
	Advertised []string
	// FeatureSets are the names of its feature sets, sorted.
	FeatureSets []string
	// Manifest is what Digest takes, as sent: nil unless IsMCPL, and over 256 KiB.
	Manifest json.RawMessage
	// Tools is whether it offers MCP tools, for Advertised of a later manifest.
	Tools bool
}

// initializeParams are the params of initialize (semantics §12.2 step 1).
type initializeParams struct {
	ProtocolVersion string             `json:"protocolVersion"`
	ClientInfo      Implementation     `json:"clientInfo"`
	Capabilities    clientCapabilities `json:"capabilities"`
}

type clientCapabilities struct {
	Experimental struct {
		MCPL struct {
			Version     string          `json:"version"`
			Channels    map[string]bool `json:"channels"`
			FeatureSets bool            `json:"featureSets"`
			PushEvents  bool            `json:"pushEvents"`
		} `json:"mcpl"`
	} `json:"experimental"`
}

func newInitializeParams(client Implementation) initializeParams {
	p := initializeParams{ProtocolVersion: protocolVersion, ClientInfo: client}
	mcpl := &p.Capabilities.Experimental.MCPL
	mcpl.Version = mcplVersion
	mcpl.FeatureSets, mcpl.PushEvents = true, true
	mcpl.Channels = map[string]bool{
		"register": true, "lifecycle": true, "publish": true, "incoming": true,
		"streaming": true, "acknowledge": true, "typing": true,
	}
	return p
}

// Initialize makes the MCP handshake: initialize, 30 s, then
// notifications/initialized with nothing in between (fact 22). A failure, and
// the end of ctx, closes the connection (semantics §12.2 step 1). No other call
// may be started meanwhile.
func Initialize(ctx context.Context, c *Conn, client Implementation) (InitializeResult, error) {
	res, err := initialize(ctx, c, client)
	if err != nil {
		c.Close("the handshake failed")
		return InitializeResult{}, err
	}
	return res, nil
}

func initialize(ctx context.Context, c *Conn, client Implementation) (InitializeResult, error) {
	raw, err := c.Start(MethodInitialize, newInitializeParams(client), initializeTimeout).Wait(ctx)
	if err != nil {
		return InitializeResult{}, err
	}
	res, err := parseInitializeResult(raw)
	if err != nil {
		return InitializeResult{}, err
	}
	return res, c.Notify(MethodInitialized, nil)
}

func parseInitializeResult(raw json.RawMessage) (InitializeResult, error) {
	var r struct {
		ServerInfo   json.RawMessage `json:"serverInfo"`
		Capabilities json.RawMessage `json:"capabilities"`
	}
	if !isObject(raw) || json.Unmarshal(raw, &r) != nil {
		return InitializeResult{}, ErrMalformedAnswer
	}
	info, capabilities := members(r.ServerInfo), members(r.Capabilities)
	mcpl := members(capabilities["experimental"])["mcpl"]
	return InitializeResult{
		ServerInfo: Implementation{
			Name:    Sanitize(text(info["name"]), maxNameBytes),
			Version: Sanitize(text(info["version"]), maxNameBytes),
		},
		IsMCPL:      isObject(mcpl),
		MCPLVersion: Sanitize(text(members(mcpl)["version"]), maxNameBytes),
		Advertised:  advertisedPaths(mcpl, capabilities["tools"]),
		FeatureSets: featureSetNames(members(mcpl)["featureSets"]),
		Manifest:    keptManifest(mcpl),
		Tools:       offersTools(capabilities["tools"]),
	}, nil
}

// featureSetNames reads the array of 0.4 and the object of 0.5 (fact 8). An
// array's elements name themselves; its indexes are no names.
func featureSetNames(raw json.RawMessage) []string {
	var names []string
	if isArray(raw) {
		for _, item := range items(raw) {
			if name := text(members(item)["name"]); name != "" {
				names = append(names, name)
			}
		}
	} else {
		for name := range members(raw) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return bounded(slices.Compact(names))
}

// bounded sanitises and cuts a list of names or notes of a connector.
func bounded(list []string) []string {
	if len(list) > maxNames {
		list = list[:maxNames]
	}
	for i, s := range list {
		list[i] = Sanitize(s, maxNameBytes)
	}
	return list
}
