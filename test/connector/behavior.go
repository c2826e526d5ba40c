package connector

import (
	"encoding/json"
	"time"
)

// Duration is a time.Duration that is written "1.5s" in JSON.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) {
	return []byte(time.Duration(d).String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// Behavior is what a connector does of its own accord. It may be changed at any
// time and counts from the next occasion on. The zero value is well-behaved.
type Behavior struct {
	// Initialize says how initialize is answered.
	Initialize InitializeAnswer `json:"initialize,omitzero"`
	// Policy says how featureSets/update is answered.
	Policy PolicyAnswer `json:"policy,omitzero"`

	// Register says when channels/register is sent, once a connection.
	Register RegisterWhen `json:"register,omitempty"`
	// RegisterForm is AsRequest (default) or AsNotification (fact 26).
	RegisterForm Form `json:"registerForm,omitempty"`
	// BlockOnRegister keeps it from serving anything until the host has answered
	// its channels/register (semantics §12.4: answer before reconciling). With a
	// registration before the policy it blocks the policy, too: nobody moves.
	BlockOnRegister bool `json:"blockOnRegister,omitempty"`
	// DropUnaccepted makes it forget every registered channel whose verdict is
	// not accepted:true (fact 28).
	DropUnaccepted bool `json:"dropUnaccepted,omitempty"`
	// ForgetOnConnect clears the open set on each connection (fact 25).
	// Default: it is kept until Restart.
	ForgetOnConnect bool `json:"forgetOnConnect,omitempty"`
	// ServeManifest answers mcpl/manifest. Default: -32601 (fact 17).
	ServeManifest bool `json:"serveManifest,omitempty"`
	// Noise writes a log line, which is not JSON, before each answer (fact 13).
	Noise bool `json:"noise,omitempty"`
	// Delay is how long each request but those of the handshake takes.
	Delay Duration `json:"delay,omitempty"`
	// RefuseStatus answers every upgrade with this HTTP status. Default: none.
	RefuseStatus int `json:"refuseStatus,omitempty"`
	// GarbleUpgrades answers every upgrade with what is not HTTP.
	GarbleUpgrades bool `json:"garbleUpgrades,omitempty"`
}

// RegisterWhen is an occasion for channels/register.
type RegisterWhen string

const (
	RegisterAfterPolicy      RegisterWhen = ""                 // once a policy is accepted
	RegisterBeforePolicy     RegisterWhen = "beforePolicy"     // when the policy has come, before its answer
	RegisterAfterInitialized RegisterWhen = "afterInitialized" // before any policy
	RegisterNever            RegisterWhen = "never"            // until RegisterAll is called
)

// InitializeAnswer is an answer to initialize.
type InitializeAnswer struct {
	Kind InitializeKind `json:"kind,omitempty"`
	// Error is answered by InitializeFail. Default: -32603.
	Error *RPCError `json:"error,omitempty"`
	// Frame is sent by InitializeGarbage. Default: a line that is not JSON.
	Frame string `json:"frame,omitempty"`
}

// InitializeKind is a way to answer initialize.
type InitializeKind string

const (
	InitializeServe     InitializeKind = ""          // as a connector of the dialect
	InitializePlain     InitializeKind = "plain"     // as plain MCP, without experimental.mcpl
	InitializeFail      InitializeKind = "fail"      // with Error
	InitializeNever     InitializeKind = "never"     // not at all
	InitializeGarbage   InitializeKind = "garbage"   // with Frame, and nothing else
	InitializeMalformed InitializeKind = "malformed" // with a result that is no object
	InitializeDrop      InitializeKind = "drop"      // by dropping the connection
)

// PolicyAnswer is an answer to featureSets/update.
type PolicyAnswer struct {
	Kind PolicyKind `json:"kind,omitempty"`
	// Notes are told with an accepted policy (dialect 0.5).
	Notes []string `json:"notes,omitempty"`
	// Unavailable are feature sets PolicyDegraded names. Default: what the grant
	// leaves without a capability.
	Unavailable []UnavailableFeature `json:"unavailable,omitempty"`
	// Result is answered by PolicyResult, as it is.
	Result json.RawMessage `json:"result,omitempty"`
}

// UnavailableFeature is a feature set that cannot be served under a policy.
type UnavailableFeature struct {
	FeatureSet          string   `json:"featureSet"`
	MissingCapabilities []string `json:"missingCapabilities"`
	Reason              string   `json:"reason"`
	Effect              string   `json:"effect"`
}

// PolicyKind is a way to answer a policy.
type PolicyKind string

const (
	PolicyAccept   PolicyKind = ""         // accepted; degraded if the grant leaves something out
	PolicyDegraded PolicyKind = "degraded" // accepted with mode degraded, whatever was granted
	PolicyMCPOnly  PolicyKind = "mcp-only" // refused: {accepted:false, fallback:"mcp-only"}
	PolicyClose    PolicyKind = "close"    // refused: {accepted:false, fallback:"close"}
	PolicyNever    PolicyKind = "never"    // taken, and not answered
	PolicyResult   PolicyKind = "result"   // taken, and answered with Result
)

// SetBehavior replaces the behaviour.
func (c *Connector) SetBehavior(b Behavior) {
	c.Change(func(old *Behavior) { *old = b })
}

// Change edits the behaviour.
func (c *Connector) Change(edit func(*Behavior)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit(&c.behavior)
}

// Behavior returns the behaviour.
func (c *Connector) Behavior() Behavior {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.behavior
}
