// Package v1alpha1 holds the kinds of the mcpl.dev API, one file each.
//
// A kind's file has its spec, its status and the constants that stand in its
// conditions. What the values mean is in docs/semantics.md; nothing here decides anything.
//
// +kubebuilder:object:generate=true
// +groupName=mcpl.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "mcpl.dev", Version: "v1alpha1"}

// AddToScheme makes the kinds known to a scheme.
var AddToScheme = builder.AddToScheme

var builder = runtime.NewSchemeBuilder(addKinds)

func addKinds(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Connector{}, &ConnectorList{},
		&Channel{}, &ChannelList{},
		&ChannelDecision{}, &ChannelDecisionList{},
		&ChannelRecord{}, &ChannelRecordList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
