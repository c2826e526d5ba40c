package v1alpha1

// State is what a decision says should be. A tuned-out channel wants its
// transport open, too: only the resident's attention is diverted. Each field says which it takes: a
// marker here would win over the field's.
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
// +kubebuilder:validation:Enum=Open;Close;Decline
type DecisionKind string

// The kinds of decision.
const (
	DecisionOpen  DecisionKind = "Open"
	DecisionClose DecisionKind = "Close"
	// DecisionDecline is the resident's explicit "stay closed" to an invitation.
	DecisionDecline DecisionKind = "Decline"
)

// Result is the answer of a ChannelDecision. Once written it never changes.
// +kubebuilder:validation:Enum=Opened;AlreadyOpen;Reconciled;Closed;AlreadyClosed;RemainedClosed;Declined;Replaced;Refused;Superseded;Failed
type Result string

// The results.
const (
	ResultOpened        Result = "Opened"
	ResultAlreadyOpen   Result = "AlreadyOpen"
	ResultReconciled    Result = "Reconciled"
	ResultClosed        Result = "Closed"
	ResultAlreadyClosed Result = "AlreadyClosed"
	// ResultRemainedClosed: declined, and the channel is certainly closed.
	ResultRemainedClosed Result = "RemainedClosed"
	// ResultDeclined: declined, and it is not certain that the channel is closed.
	ResultDeclined Result = "Declined"
	// ResultReplaced: declined, and a later decision stands.
	ResultReplaced   Result = "Replaced"
	ResultRefused    Result = "Refused"
	ResultSuperseded Result = "Superseded"
	ResultFailed     Result = "Failed"
)

// Cause says why a decision was refused, or failed.
// +kubebuilder:validation:MaxLength=64
type Cause string

// Reasons of a refusal: the caller stands down and nothing changed.
const (
	CauseTunedOut       Cause = "TunedOut"
	CauseNotItsResident Cause = "NotItsResident"
	CauseExplicitOpen   Cause = "ExplicitOpen"
	CauseHeld           Cause = "Held"
	CauseStillOpen      Cause = "StillOpen"
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
	CauseOvertaken         Cause = "Overtaken"
	CauseSelectedAgain     Cause = "SelectedAgain"
	CauseNotConfirmedOpen  Cause = "NotConfirmedOpen"
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

// ReasonSuspended: spec.suspend is set.
const ReasonSuspended = "Suspended"

// ReconcileAtAnnotation, set to anything new, has a Channel's decided operation sent again, and a
// Connector dialled now. What was handled stands in status.lastHandledReconcileAt.
const ReconcileAtAnnotation = "mcpl.dev/reconcile-at"

// Hold keeps channels closed, whatever is decided of them. It writes no record: what is decided
// meanwhile is recorded, and applied when the hold is lifted. Setting it, changing it and lifting it
// need the verb hold on the object.
type Hold struct {
	// state that it holds: Closed.
	// +required
	// +kubebuilder:validation:Enum=Closed
	State State `json:"state"`

	// reason for people, such as "incident 4711". At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

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
