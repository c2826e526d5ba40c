package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChannelDecisionSpec asks for one decision. It can not be changed: a decision that was made stays made.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec can not be changed: a decision that was made stays made; make another ChannelDecision"
// +kubebuilder:validation:XValidation:rule="self.decision != 'Open' || self.source == 'AgentTool'",message="spec.source of an Open must be AgentTool"
// +kubebuilder:validation:XValidation:rule="self.decision != 'Close' || self.source in ['AgentTool', 'ModuleTool', 'SubscriptionGC', 'Housekeeping']",message="spec.source of a Close must be AgentTool, ModuleTool, SubscriptionGC or Housekeeping"
// +kubebuilder:validation:XValidation:rule="self.decision != 'Decline' || self.source == 'InvitationDeclined'",message="spec.source of a Decline must be InvitationDeclined"
// +kubebuilder:validation:XValidation:rule="!has(self.acknowledge) || self.decision == 'Decline'",message="spec.acknowledge can be asked for only by a Decline"
// +kubebuilder:validation:XValidation:rule="!has(self.lease) || (self.decision == 'Close' && self.source in ['SubscriptionGC', 'Housekeeping'])",message="spec.lease can be claimed only by a Close whose spec.source is SubscriptionGC or Housekeeping"
// +kubebuilder:validation:XValidation:rule="!has(self.history) || self.decision == 'Open'",message="spec.history can be asked for only by an Open"
type ChannelDecisionSpec struct {
	// channelRef says which channel: by the name of a Channel, or by serverID and channelID. It is
	// resolved once and kept.
	// +required
	ChannelRef ChannelReference `json:"channelRef"`

	// decision is Open, Close or Decline.
	// +required
	Decision DecisionKind `json:"decision"`

	// source is who decides. Open: AgentTool. Close: AgentTool, ModuleTool, SubscriptionGC or
	// Housekeeping. Decline: InvitationDeclined.
	// +required
	Source Source `json:"source"`

	// decidedBy is the name of who decides. For AgentTool and InvitationDeclined it is a Resident of
	// this namespace for which the user has the verb speakfor; for the other sources it is the user's
	// own name, unless the user has the verb attribute on channeldecisions. At most 512 characters,
	// none of them a control character.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1F\x7F-\x9F]+$`
	DecidedBy string `json:"decidedBy"`

	// requestedBy is the name of the user who made the object. Where it is set it must be true. At
	// most 512 characters, none of them a control character.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1F\x7F-\x9F]+$`
	RequestedBy string `json:"requestedBy,omitempty"`

	// acknowledge has a Decline shown to whoever wrote the invitation. It is posted once at the most.
	// +optional
	Acknowledge *Acknowledge `json:"acknowledge,omitempty"`

	// lease is Claimed by a machine that may close even a channel that its resident opened: an
	// idle budget was set for that very channel. Absent means it stands down before such a channel.
	// +optional
	// +kubebuilder:validation:Enum=Claimed
	Lease Lease `json:"lease,omitempty"`

	// history asks an Open to fetch earlier messages. The status says how many came, never what they say.
	// +optional
	History *HistoryRequest `json:"history,omitempty"`

	// deadlineSeconds is how long the decision waits for a channel that does not exist yet, in
	// seconds; then it fails with NotFound. 0 to 604,800, default 3,600.
	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	DeadlineSeconds *int32 `json:"deadlineSeconds,omitempty"`

	// ttlSecondsAfterFinished is how long a finished decision with a generated name is kept, in
	// seconds; never less than 300. Default 86,400. One with a name of its own is never deleted.
	// +optional
	// +kubebuilder:default=86400
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ChannelReference is the name of a Channel, or the pair that the channel is.
// +kubebuilder:validation:XValidation:rule="has(self.name) ? (!has(self.serverID) && !has(self.channelID)) : (has(self.serverID) && has(self.channelID))",message="spec.channelRef takes either name, or serverID and channelID"
type ChannelReference struct {
	// name of a Channel of this namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// serverID of the connector, a DNS label. With channelID, instead of name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ServerID string `json:"serverID,omitempty"`

	// channelID of the channel. With serverID, instead of name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1F\x7F]+$`
	ChannelID string `json:"channelID,omitempty"`
}

// Lease is a machine's certification that an idle budget consents to closing an explicit open.
type Lease string

// LeaseClaimed claims it.
const LeaseClaimed Lease = "Claimed"

// HistoryRequest asks for earlier messages.
type HistoryRequest struct {
	// limit is how many at most. 1 to 500.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	Limit int32 `json:"limit"`
}

// Acknowledge is what a decline shows to whoever wrote the invitation.
type Acknowledge struct {
	// messageID of the invitation, as the connector writes it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	MessageID string `json:"messageID"`

	// text to show, such as an emoji. At most 512 characters. It stands here only, since its author wrote it here.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Text string `json:"text"`
}

// Acknowledgement says what became of an acknowledgement.
type Acknowledgement struct {
	// state is Acknowledged, Failed, or Interrupted: it may or may not have been posted.
	// +kubebuilder:validation:Enum=Acknowledged;Failed;Interrupted
	State AcknowledgementState `json:"state"`
	// representation is how the connector shows it, in its own word.
	// +optional
	Representation string `json:"representation,omitempty"`
	// message says why it was not posted.
	// +optional
	Message string `json:"message,omitempty"`
}

// AcknowledgementState is what became of an acknowledgement.
type AcknowledgementState string

// The states of an acknowledgement.
const (
	Acknowledged               AcknowledgementState = "Acknowledged"
	AcknowledgementFailed      AcknowledgementState = "Failed"
	AcknowledgementInterrupted AcknowledgementState = "Interrupted"
)

// ChannelDecisionStatus is the answer.
type ChannelDecisionStatus struct {
	// observedGeneration is the generation that this status is about; -1 until the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// serverID of the channel, resolved once and kept.
	// +optional
	ServerID string `json:"serverID,omitempty"`

	// channelID of the channel, resolved once and kept.
	// +optional
	ChannelID string `json:"channelID,omitempty"`

	// seenAt is the resource version of a decision that must wait, when it was first seen: its
	// place among those that wait.
	// +optional
	SeenAt string `json:"seenAt,omitempty"`

	// revision of the record that it made, or found.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// result is the answer, in one word.
	// +optional
	Result Result `json:"result,omitempty"`

	// cause says why it was refused or failed.
	// +optional
	Cause Cause `json:"cause,omitempty"`

	// message is the sentence that goes with the result.
	// +optional
	Message string `json:"message,omitempty"`

	// acknowledgement says what became of the acknowledgement, without its text.
	// +optional
	Acknowledgement *Acknowledgement `json:"acknowledgement,omitempty"`

	// history says what the history request brought.
	// +optional
	History *HistoryResult `json:"history,omitempty"`

	// recordedAt is when the decision was recorded.
	// +optional
	RecordedAt *metav1.Time `json:"recordedAt,omitempty"`

	// completedAt is when it was answered.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// conditions are Recorded, Complete, Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HistoryResult says what a history request brought.
type HistoryResult struct {
	// count of messages.
	Count int32 `json:"count"`
	// truncated is true where the connector had more.
	Truncated bool `json:"truncated"`
}

// Condition types of a ChannelDecision.
const (
	// ConditionRecorded is True once the decision stands in the channel's record.
	ConditionRecorded = "Recorded"
	// ConditionComplete is True once the answer is final; its reason is the result.
	ConditionComplete = "Complete"
)

// Reasons of Recorded.
const (
	// ReasonAppended: it made a record.
	ReasonAppended = "Appended"
	// ReasonUnchanged: what it asked for was already decided.
	ReasonUnchanged = "Unchanged"
	// ReasonRefused: it was refused, and nothing changed.
	ReasonRefused = "Refused"
	// ReasonStoreFailed: it could not be stored, and nothing changed.
	ReasonStoreFailed = "StoreFailed"
	// ReasonFailed: it was not recorded since it failed before.
	ReasonFailed = "Failed"
)

// ReasonWaiting is the reason of an unknown Complete: the answer is still awaited.
const ReasonWaiting = "Waiting"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=mcpl,shortName=chd
// +kubebuilder:selectablefield:JSONPath=`.spec.channelRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.channelRef.serverID`
// +kubebuilder:selectablefield:JSONPath=`.spec.channelRef.channelID`
// +kubebuilder:printcolumn:name="Channel",type=string,JSONPath=`.spec.channelRef['name','channelID']`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.decidedBy`
// +kubebuilder:printcolumn:name="Result",type=string,JSONPath=`.status.result`
// +kubebuilder:printcolumn:name="Cause",type=string,JSONPath=`.status.cause`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Revision",type=integer,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Complete")].message`

// ChannelDecision is a request to open or close a channel, and its answer. Deleting it changes
// nothing that is decided. Its name is its idempotency key: applied again under the same name it
// decides nothing.
type ChannelDecision struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request. It can not be changed.
	// +required
	Spec ChannelDecisionSpec `json:"spec"`

	// status is the answer.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ChannelDecisionStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ChannelDecisionList is a list of ChannelDecisions.
type ChannelDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ChannelDecision `json:"items"`
}
