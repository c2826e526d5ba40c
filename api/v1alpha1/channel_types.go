package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChannelSpec names one channel of one connector.
type ChannelSpec struct {
	// connectorRef names the Connector. It can not be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.connectorRef can not be changed: make another Channel"
	ConnectorRef NameReference `json:"connectorRef"`

	// channelID is the channel's id, unique within its connector, as the connector writes it. At
	// most 2,048 characters, none of them a control character. It can not be changed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1F\x7F]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.channelID can not be changed: make another Channel"
	ChannelID string `json:"channelID"`

	// admission wins over the connector's subscription for this channel: Open has it opened while
	// nobody has decided, Closed keeps it closed while nobody has, even if its connector wishes
	// otherwise. It never touches what somebody decided. Absent means the subscription decides.
	// +optional
	// +kubebuilder:validation:Enum=Open;Closed
	Admission State `json:"admission,omitempty"`

	// hold keeps the channel closed, whatever is decided of it.
	// +optional
	Hold *Hold `json:"hold,omitempty"`

	// publishing is Allowed (default), or Forbidden: then nothing is ever posted there, the
	// acknowledgement of a decline included.
	// +optional
	// +kubebuilder:default=Allowed
	// +kubebuilder:validation:Enum=Allowed;Forbidden
	Publishing Publishing `json:"publishing,omitempty"`

	// suspend has nothing sent for the channel; decisions are recorded, and answered once it is
	// lifted. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// deletionPolicy is what the deletion of this object does to the channel: Retain (default), nothing;
	// Close, it is closed as by housekeeping with a lease, and the object goes within 60 s
	// whatever the connector does.
	// +optional
	// +kubebuilder:default=Retain
	// +kubebuilder:validation:Enum=Retain;Close
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// decisionHistoryLimit is how many of the newest decisions the channel's record keeps, and how
	// many finished ChannelDecisions with a generated name are kept. 0 to 100, default 10.
	// Decisions with a name of their own, and those whose object still exists, are kept beyond it.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	DecisionHistoryLimit *int32 `json:"decisionHistoryLimit,omitempty"`
}

// Publishing says whether anything may be posted to a channel.
type Publishing string

// The two.
const (
	PublishingAllowed   Publishing = "Allowed"
	PublishingForbidden Publishing = "Forbidden"
)

// DeletionPolicy says what the deletion of a Channel does to the channel.
type DeletionPolicy string

// The two.
const (
	DeletionRetain DeletionPolicy = "Retain"
	DeletionClose  DeletionPolicy = "Close"
)

// CloseFinalizer keeps a Channel with deletionPolicy Close until its channel is closed, or a minute is over.
const CloseFinalizer = "mcpl.dev/close"

// ChannelStatus is what is decided of a channel and what its connector has confirmed.
type ChannelStatus struct {
	// observedGeneration is the generation that this status is about; -1 until the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// serverID of its connector, resolved once and kept.
	// +optional
	ServerID string `json:"serverID,omitempty"`

	// label is what the connector calls the channel. It is the connector's own word and changes.
	// +optional
	Label string `json:"label,omitempty"`

	// type is the kind of platform, as the connector says.
	// +optional
	Type string `json:"type,omitempty"`

	// direction is bidirectional, inbound or outbound, as the connector says.
	// +optional
	Direction string `json:"direction,omitempty"`

	// desired is what should be, for people: Open, Closed, TunedOut, or Closed (held).
	// +optional
	Desired string `json:"desired,omitempty"`

	// registration says how the connector knows the channel: Declared, PushKnown or NotRegistered.
	// +optional
	Registration Registration `json:"registration,omitempty"`

	// transport is what the connector has confirmed: Open, Closed, or Unconfirmed.
	// +optional
	Transport TransportState `json:"transport,omitempty"`

	// decision in force. Absent while nobody has decided and no policy has looked at the channel.
	// +optional
	Decision *DecisionInForce `json:"decision,omitempty"`

	// outstandingWork counts the opens and closes that are queued or in flight.
	// +optional
	OutstandingWork int32 `json:"outstandingWork,omitempty"`

	// lastHandledReconcileAt is the value of the annotation mcpl.dev/reconcile-at that was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// conditions are Registered, Settled, Held, Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DecisionInForce is the newest record of a channel.
type DecisionInForce struct {
	// state that was decided: Open, Closed or TunedOut.
	// +kubebuilder:validation:Enum=Open;Closed;TunedOut
	State State `json:"state"`

	// source is who, or what, decided.
	Source Source `json:"source"`

	// revision of the record in the channel's ChannelRecord. 0 while nobody has decided: such a
	// channel has no ChannelRecord.
	Revision int64 `json:"revision"`

	// decidedBy is the name of who decided. Absent where no one in particular did.
	// +optional
	DecidedBy string `json:"decidedBy,omitempty"`

	// decidedAt is when it was recorded.
	// +optional
	DecidedAt *metav1.Time `json:"decidedAt,omitempty"`

	// decisionRef is the object that asked for it.
	// +optional
	DecisionRef *DecisionReference `json:"decisionRef,omitempty"`
}

// Condition types of a Channel.
const (
	// ConditionRegistered is True while the connector declares the channel.
	ConditionRegistered = "Registered"
	// ConditionSettled is True while the transport is confirmed to be what is wanted.
	ConditionSettled = "Settled"
	// ConditionHeld is there only while a hold keeps the channel closed.
	ConditionHeld = "Held"
)

// Reasons of Registered.
const (
	// ReasonDeclared: the connector declares the channel.
	ReasonDeclared = "Declared"
	// ReasonPushKnown: only a push named the channel.
	ReasonPushKnown = "PushKnown"
	// ReasonNotRegistered: the connector does not name the channel.
	ReasonNotRegistered = "NotRegistered"
	// ReasonConnectorGone: the Connector does not exist.
	ReasonConnectorGone = "ConnectorGone"
)

// Reasons of Settled.
const (
	// ReasonOpen: decided open, confirmed open.
	ReasonOpen = "Open"
	// ReasonClosed: not decided open, confirmed closed.
	ReasonClosed = "Closed"
	// ReasonTunedOut: decided tuned out, confirmed open.
	ReasonTunedOut = "TunedOut"
	// ReasonWorkOutstanding: an open or close is queued or in flight.
	ReasonWorkOutstanding = "WorkOutstanding"
	// ReasonUnconfirmed: nothing valid says what the connector has.
	ReasonUnconfirmed = "Unconfirmed"
	// ReasonOpenFailed: the open failed.
	ReasonOpenFailed = "OpenFailed"
	// ReasonCloseFailed: the close failed.
	ReasonCloseFailed = "CloseFailed"
	// ReasonSubstituted: the connector answered for another channel.
	ReasonSubstituted = "Substituted"
	// ReasonDidNotConverge: the target or the decision kept changing.
	ReasonDidNotConverge = "DidNotConverge"
	// ReasonNotPermitted: channels.lifecycle is not granted.
	ReasonNotPermitted = "NotPermitted"
	// ReasonConnectorDown: the connector is not Up.
	ReasonConnectorDown = "ConnectorDown"
	// ReasonRegistrationGone: the connector no longer declares the channel.
	ReasonRegistrationGone = "RegistrationGone"
)

// ReasonHold is the reason of Held.
const ReasonHold = "Hold"

// Reasons of Ready.
const (
	// ReasonSettled: nothing is left to do.
	ReasonSettled = "Settled"
	// ReasonDuplicateChannel: an older Channel stands for the same channel.
	ReasonDuplicateChannel = "DuplicateChannel"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=mcpl,shortName=ch
// +kubebuilder:selectablefield:JSONPath=`.spec.connectorRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.channelID`
// +kubebuilder:printcolumn:name="Connector",type=string,JSONPath=`.spec.connectorRef.name`
// +kubebuilder:printcolumn:name="Channel",type=string,JSONPath=`.status.label`
// +kubebuilder:printcolumn:name="Desired",type=string,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="Transport",type=string,JSONPath=`.status.transport`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.decision.source`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Channel-ID",type=string,priority=1,JSONPath=`.spec.channelID`
// +kubebuilder:printcolumn:name="By",type=string,priority=1,JSONPath=`.status.decision.decidedBy`
// +kubebuilder:printcolumn:name="Revision",type=integer,priority=1,JSONPath=`.status.decision.revision`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must have at most 63 characters"

// Channel is one chat channel of one connector: what is decided of it and what is confirmed.
type Channel struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the channel.
	// +required
	Spec ChannelSpec `json:"spec"`

	// status is what is decided of it and what is confirmed.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ChannelStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ChannelList is a list of Channels.
type ChannelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Channel `json:"items"`
}
