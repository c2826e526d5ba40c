package controllers

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setConditions makes a status's conditions exactly these, and keeps the time of those whose
// status did not change.
func setConditions(conditions *[]metav1.Condition, generation int64, now metav1.Time, want ...metav1.Condition) {
	*conditions = slices.DeleteFunc(*conditions, func(c metav1.Condition) bool {
		return meta.FindStatusCondition(want, c.Type) == nil
	})
	for _, c := range want {
		c.ObservedGeneration = generation
		c.LastTransitionTime = now
		meta.SetStatusCondition(conditions, c)
	}
}
