package v1alpha1

// State is what a decision says should be. A tuned-out channel wants its
// transport open, too: only the resident's attention is diverted.
// +kubebuilder:validation:Enum=Open;Closed;TunedOut
type State string

// The three states. A channel with no record has none of them and counts as closed.
const (
	StateOpen     State = "Open"
	StateClosed   State = "Closed"
	StateTunedOut State = "TunedOut"
)

// Source is who, or what, made a decision: a closed vocabulary.
// +kubebuilder:validation:Enum=AgentTool;InvitationDeclined;ModuleTool;SubscriptionGC;Housekeeping;DefaultClosed;ServerBootstrap;SubscriptionPolicy;OpenedByDelivery;OpenedByReply;Subconscious;Duration;TuneOutMaxWakes;LegacyRecipeMigration;Unknown
type Source string

// The sources. What each may write over, and what may write over it, is decided in internal/decision.
const (
	// SourceAgentTool is the resident itself (or a caller that did not say who it is).
	SourceAgentTool Source = "AgentTool"
	// SourceInvitationDeclined is the resident's explicit "stay closed" to an invitation.
	SourceInvitationDeclined Source = "InvitationDeclined"
	// SourceModuleTool is a module of the host that closes on its own behalf.
	SourceModuleTool Source = "ModuleTool"
	// SourceSubscriptionGC is the machine that closes channels nobody used.
	SourceSubscriptionGC Source = "SubscriptionGC"
	// SourceHousekeeping is any other machine that tidies up.
	SourceHousekeeping Source = "Housekeeping"
	// SourceDefaultClosed says that nobody decided: the channel merely starts closed.
	SourceDefaultClosed Source = "DefaultClosed"
	// SourceServerBootstrap is the connector, whose channel said initiallyOpen.
	SourceServerBootstrap Source = "ServerBootstrap"
	// SourceSubscriptionPolicy is the subscription of the Connector.
	SourceSubscriptionPolicy Source = "SubscriptionPolicy"
	// SourceOpenedByDelivery is plain speech that opened the channel it went to.
	SourceOpenedByDelivery Source = "OpenedByDelivery"
	// SourceOpenedByReply is a send tool that opened the channel it went to.
	SourceOpenedByReply Source = "OpenedByReply"
	// SourceSubconscious is the end of a tune-out by the subconscious.
	SourceSubconscious Source = "Subconscious"
	// SourceDuration is the end of a tune-out by its deadline.
	SourceDuration Source = "Duration"
	// SourceTuneOutMaxWakes is the end of a tune-out by a wake beyond its budget.
	SourceTuneOutMaxWakes Source = "TuneOutMaxWakes"
	// SourceLegacyRecipeMigration is found on imported records only.
	SourceLegacyRecipeMigration Source = "LegacyRecipeMigration"
	// SourceUnknown is found on imported records whose source could not be read.
	SourceUnknown Source = "Unknown"
)

// TransportState is what the connector has confirmed of a channel. It is never durable truth.
// +kubebuilder:validation:Enum=Open;Closed;Unconfirmed
type TransportState string

// The transport states. Unconfirmed is not Closed: nothing valid says what the connector has.
const (
	TransportOpen        TransportState = "Open"
	TransportClosed      TransportState = "Closed"
	TransportUnconfirmed TransportState = "Unconfirmed"
)

// Registration is how a channel is known to its connector.
// +kubebuilder:validation:Enum=Declared;PushKnown;NotRegistered
type Registration string

// The registrations.
const (
	// RegistrationDeclared says that the connector declares the channel.
	RegistrationDeclared Registration = "Declared"
	// RegistrationPushKnown says that only a push named the channel: it can be published to, and hears nothing.
	RegistrationPushKnown Registration = "PushKnown"
	// RegistrationNotRegistered says that the connector does not name the channel now.
	RegistrationNotRegistered Registration = "NotRegistered"
)

// ConnectorState is what has become of the connection to a connector.
// +kubebuilder:validation:Enum=Connecting;Up;Reconnecting;Gone
type ConnectorState string

// The connector states.
const (
	ConnectorConnecting   ConnectorState = "Connecting"
	ConnectorUp           ConnectorState = "Up"
	ConnectorReconnecting ConnectorState = "Reconnecting"
	ConnectorGone         ConnectorState = "Gone"
)

// DecisionKind is what a ChannelDecision asks for.
// +kubebuilder:validation:Enum=Open;Close
type DecisionKind string

// The kinds of decision.
const (
	DecisionOpen  DecisionKind = "Open"
	DecisionClose DecisionKind = "Close"
)

// Result is the answer of a ChannelDecision. Once written it never changes.
// +kubebuilder:validation:Enum=Opened;AlreadyOpen;Reconciled;Closed;AlreadyClosed;Refused;Superseded;Failed
type Result string

// The results.
const (
	ResultOpened        Result = "Opened"
	ResultAlreadyOpen   Result = "AlreadyOpen"
	ResultReconciled    Result = "Reconciled"
	ResultClosed        Result = "Closed"
	ResultAlreadyClosed Result = "AlreadyClosed"
	ResultRefused       Result = "Refused"
	ResultSuperseded    Result = "Superseded"
	ResultFailed        Result = "Failed"
)

// Cause says why a decision was refused, or failed.
// +kubebuilder:validation:MaxLength=64
type Cause string

// Reasons of a refusal: the caller stands down and nothing changed.
const (
	CauseTunedOut       Cause = "TunedOut"
	CauseNotItsResident Cause = "NotItsResident"
	CauseExplicitOpen   Cause = "ExplicitOpen"
)

// Categories of a failure.
const (
	CauseNotFound          Cause = "NotFound"
	CauseNotPermitted      Cause = "NotPermitted"
	CauseConnectorMissing  Cause = "ConnectorMissing"
	CauseConnectorFailed   Cause = "ConnectorFailed"
	CauseStaysSelected     Cause = "StaysSelected"
	CauseDidNotConverge    Cause = "DidNotConverge"
	CauseSubstituted       Cause = "Substituted"
	CauseRegistrationGone  Cause = "RegistrationGone"
	CauseSuperseded        Cause = "Superseded"
	CauseStoreFailed       Cause = "StoreFailed"
	CauseDecisionNotStored Cause = "DecisionNotStored"
)

// Condition types that every kind with a status uses (kstatus).
const (
	// ConditionReady sums up the others: True when nothing is left to do or to worry about.
	ConditionReady = "Ready"
	// ConditionReconciling is there only while something is under way.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is there only while nothing will happen until somebody acts.
	ConditionStalled = "Stalled"
)

// DiscoveredLabel is "true" on a Channel that the operator made because its connector declared it.
const DiscoveredLabel = "mcpl.dev/discovered"

// NameReference names an object of the same namespace.
type NameReference struct {
	// name of the object, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}
