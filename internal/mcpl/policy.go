package mcpl

import (
	"context"
	"encoding/json"
)

// Mode is how much of a policy a connector says it can serve.
type Mode string

const (
	ModeFull     Mode = "full"
	ModeDegraded Mode = "degraded"
)

// Fallback is what a connector that refuses a policy asks for.
type Fallback string

const (
	FallbackMCPOnly Fallback = "mcp-only" // empty grant, the connection stays
	FallbackClose   Fallback = "close"    // the connection is to be closed
)

// Receipt is a connector's answer to a policy (semantics §12.2 step 5, fact 11).
// It never widens the grant.
type Receipt struct {
	// Accepted is false for a refusal; Fallback then says which.
	Accepted bool
	// Mode is "" when the connector did not say.
	Mode Mode
	// Fallback is set for a refusal only; one that names none is mcp-only.
	Fallback Fallback
	// UnavailableFeatures are the names of feature sets the connector cannot
	// serve under this policy, Notes its remarks: sanitised, at most 256 of
	// 128 bytes.
	UnavailableFeatures []string
	Notes               []string
}

// policyParams are the params of featureSets/update (semantics §12.2 step 4).
type policyParams struct {
	// EffectiveCapabilities is always sent: absent and empty both grant nothing,
	// but only empty says so.
	EffectiveCapabilities List[string] `json:"effectiveCapabilities"`
	DeniedCapabilities    []string     `json:"deniedCapabilities,omitempty"`
}

// NegotiatePolicy tells the connector its grant, always with a request: a grant
// in a notification may be ignored (fact 11). denied are explicit paths, as of
// DeniedPaths; what the grant allows is left out of them, because a path in both
// makes the policy malformed. A refusal is a Receipt, not an error. The errors
// are a *CallError — ErrorResponse, or NoResponse after 15 s without an answer —,
// ErrMalformedAnswer, and ctx's. Each of them means an empty grant (scenario
// I06); the connection is left open.
func NegotiatePolicy(ctx context.Context, c *Conn, grant Grant, denied []string) (Receipt, error) {
	params := policyParams{EffectiveCapabilities: grant.Paths()}
	for _, path := range denied {
		if !grant.Allows(path) {
			params.DeniedCapabilities = append(params.DeniedCapabilities, path)
		}
	}
	call := c.Start(MethodFeatureSetsUpdate, params, policyTimeout)
	raw, err := call.Wait(ctx)
	if err != nil {
		call.Cancel()
		return Receipt{}, err
	}
	return parseReceipt(raw)
}

func parseReceipt(raw json.RawMessage) (Receipt, error) {
	if !isObject(raw) {
		return Receipt{}, ErrMalformedAnswer
	}
	m := members(raw)
	r := Receipt{
		Accepted: isTrue(m["accepted"]),
		Notes:    bounded(texts(m["notes"])),
	}
	switch mode := Mode(text(m["mode"])); mode {
	case ModeFull, ModeDegraded:
		r.Mode = mode
	}
	if !r.Accepted {
		r.Fallback = FallbackMCPOnly
		if Fallback(text(m["fallback"])) == FallbackClose {
			r.Fallback = FallbackClose
		}
	}
	// A feature is an object that names its set, or just the name.
	var features []string
	for _, item := range items(m["unavailableFeatures"]) {
		name := text(item)
		if isObject(item) {
			name = text(members(item)["featureSet"])
		}
		if name != "" {
			features = append(features, name)
		}
	}
	r.UnavailableFeatures = bounded(features)
	return r, nil
}
