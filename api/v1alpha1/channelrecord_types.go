package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Record is one decision, as it was recorded.
type Record struct {
	// id is a UUID made by the writer before the append; it tells an append whose answer was lost from one that never happened.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// state that was decided: Open, Closed or TunedOut.
	// +required
	// +kubebuilder:validation:Enum=Open;Closed;TunedOut
	State State `json:"state"`

	// source is who, or what, decided.
	// +required
	Source Source `json:"source"`

	// decidedBy is the name of who decided. Absent where no one in particular did.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	DecidedBy string `json:"decidedBy,omitempty"`

	// decisionRef is the object that asked for it.
	// +optional
	DecisionRef *DecisionReference `json:"decisionRef,omitempty"`

	// at is when it was recorded.
	// +required
	At metav1.Time `json:"at"`
}

// DecisionReference names the object that asked for a decision, as it was then.
type DecisionReference struct {
	// kind of the object: ChannelDecision or TuneOut.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Kind string `json:"kind"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the object.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
	// generation of the object.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// HistoryEntry is a record that was in force, or a decision that was answered without a new one.
type HistoryEntry struct {
	// revision that the entry made, or found.
	// +required
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision"`

	// changed is false for a decision that was answered without a new revision. Default true.
	// +optional
	// +kubebuilder:default=true
	Changed *bool `json:"changed,omitempty"`

	// named is true where the ChannelDecision had a name of its own, not a generated one: such an
	// entry is kept, since the name is the decision's idempotency key.
	// +optional
	Named bool `json:"named,omitempty"`

	Record `json:",inline"`
}

// TuneOutEpoch is what a tune-out under way has to remember.
type TuneOutEpoch struct {
	// ref is the TuneOut that asked for it.
	// +optional
	Ref *DecisionReference `json:"ref,omitempty"`

	// epochID is a random UUID that is stamped on each held message.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	EpochID string `json:"epochID"`

	// parameters in force.
	// +required
	Parameters TuneOutParameters `json:"parameters"`

	// startedAt is when it was entered.
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// expiresAt is when it ends by itself. Absent means never.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// wakes counts the wakes of this epoch.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Wakes int32 `json:"wakes,omitempty"`
}

// TuneOutParameters are the settings of a tune-out.
type TuneOutParameters struct {
	// cadenceSeconds is the period of looks, in seconds, at least 30.
	// +required
	// +kubebuilder:validation:Minimum=30
	CadenceSeconds int32 `json:"cadenceSeconds"`
	// backlogCap is how many messages are delivered at the end, at least 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	BacklogCap int32 `json:"backlogCap"`
	// maxWakes is the budget of wakes, at least 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	MaxWakes int32 `json:"maxWakes"`
	// durationSeconds until it ends by itself, in seconds, at least 60. Absent means never.
	// +optional
	// +kubebuilder:validation:Minimum=60
	DurationSeconds *int32 `json:"durationSeconds,omitempty"`
}

// LabelSightings are the labels that the channel was seen to have.
type LabelSightings struct {
	// last label seen.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Last string `json:"last,omitempty"`

	// seen lists the labels, oldest first, at most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=512
	Seen []string `json:"seen,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=mcpl,shortName=chr
// +kubebuilder:printcolumn:name="Server-ID",type=string,JSONPath=`.serverID`
// +kubebuilder:printcolumn:name="Channel",type=string,JSONPath=`.labelSightings.last`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.record.state`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.record.source`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.record.decidedBy`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.revision`
// +kubebuilder:printcolumn:name="Decided",type=date,JSONPath=`.record.at`
// +kubebuilder:printcolumn:name="Channel-ID",type=string,priority=1,JSONPath=`.channelID`
// +kubebuilder:printcolumn:name="Decision",type=string,priority=1,JSONPath=`.record.decisionRef.name`
// +kubebuilder:validation:XValidation:rule="self.serverID == oldSelf.serverID && self.channelID == oldSelf.channelID",message="serverID and channelID can not be changed: a record is about one channel"
// +kubebuilder:validation:XValidation:rule="self.revision >= oldSelf.revision",message="revision can not go back: the log only grows"
// +kubebuilder:validation:XValidation:rule="self.revision != oldSelf.revision || self.record == oldSelf.record",message="record can not be changed without a new revision"
// +kubebuilder:validation:XValidation:rule="(self.record.state == 'TunedOut') == has(self.tuneOut)",message="tuneOut must be set while record.state is TunedOut, and only then"

// ChannelRecord is the log of one channel: the decision in force and those before it. The
// operator alone writes it. Whoever deletes it leaves the channel undecided.
type ChannelRecord struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// serverID of the channel's connector. It can not be changed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	ServerID string `json:"serverID"`

	// channelID of the channel. It can not be changed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	ChannelID string `json:"channelID"`

	// revision of the record in force: from 1, without gaps, never used again.
	// +required
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision"`

	// record in force.
	// +required
	Record Record `json:"record"`

	// tuneOut is what a tune-out under way has to remember. Set while record.state is TunedOut, and only then.
	// +optional
	TuneOut *TuneOutEpoch `json:"tuneOut,omitempty"`

	// policyNoticeGiven is true once the resident was told that a policy selected the channel: it is told once, ever.
	// +optional
	PolicyNoticeGiven bool `json:"policyNoticeGiven,omitempty"`

	// labelSightings are the labels that the channel was seen to have.
	// +optional
	LabelSightings *LabelSightings `json:"labelSightings,omitempty"`

	// history, newest first, at most 200: the newest decisionHistoryLimit entries, every one whose
	// object still exists, and every one of a decision with a name of its own.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	History []HistoryEntry `json:"history,omitempty"`
}

// +kubebuilder:object:root=true

// ChannelRecordList is a list of ChannelRecords.
type ChannelRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ChannelRecord `json:"items"`
}
