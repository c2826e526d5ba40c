package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/session"
)

// countsEvery is how often the counts of a busy connector are written.
const countsEvery = 30 * time.Second

// facts is what a Connector's status is made of.
type facts struct {
	endpoint endpoint
	snapshot session.Snapshot
	// suspended says that spec.suspend is set.
	suspended bool
	// duplicateOf is the name of the older Connector that serves the serverID.
	duplicateOf string
}

func duplicate(of string) facts {
	return facts{duplicateOf: of, snapshot: session.Snapshot{State: v1.ConnectorGone}}
}

// report writes the status if it says something new: at once when a condition changes, and the
// counts when they have come to rest, or every half minute while they have not.
func (r *ConnectorReconciler) report(ctx context.Context, c *v1.Connector, f facts) (reconcile.Result, error) {
	name, now := nameOf(c), r.clock.Now()
	next := c.DeepCopy()
	fillConnector(&next.Status, c, f)
	setConditions(&next.Status.Conditions, c.Generation, metav1.NewTime(now), connectorConditions(c, f)...)
	if equality.Semantic.DeepEqual(c.Status, next.Status) {
		return reconcile.Result{}, nil
	}
	memory := r.remembered(name)
	if left := memory.patience(&c.Status, &next.Status, f.snapshot, now); left > 0 {
		r.remember(name, memory)
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if err := r.Status().Patch(ctx, next, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{})); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	memory.differs, memory.countsAt, memory.written = "", now, next.ResourceVersion
	r.remember(name, memory)
	return reconcile.Result{}, nil
}

// patience is how long a status may still wait.
func (m *reported) patience(old, next *v1.ConnectorStatus, s session.Snapshot, now time.Time) time.Duration {
	state := connectorSignature(next)
	if state == connectorSignature(old) {
		// Between two operations everything is at rest for a moment: only counts that have stood a
		// while are.
		counts := fmt.Sprint(*next.Channels, s.Outstanding)
		if m.differs != counts {
			m.differs, m.differsFrom = counts, now
		}
		last := m.countsAt
		if s.UpSince.After(last) {
			last = s.UpSince
		}
		left := countsEvery - now.Sub(last)
		if s.Outstanding == 0 {
			left = min(left, settling-now.Sub(m.differsFrom))
		}
		return left
	}
	// A connection that is being made is not worth a word unless it takes a while.
	if s.State != v1.ConnectorConnecting || s.Trouble.Reason != "" {
		return 0
	}
	if m.differs != state {
		m.differs, m.differsFrom = state, now
	}
	return settling - now.Sub(m.differsFrom)
}

// connectorSignature is what of a status is worth a write at once.
func connectorSignature(status *v1.ConnectorStatus) string {
	parts := []string{string(status.State), fmt.Sprint(status.ObservedGeneration)}
	for _, c := range status.Conditions {
		parts = append(parts, c.Type, string(c.Status), c.Reason, c.Message)
	}
	return strings.Join(parts, "|")
}

func fillConnector(status *v1.ConnectorStatus, c *v1.Connector, f facts) {
	s := f.snapshot
	status.ObservedGeneration = c.Generation
	status.ServerID = c.EffectiveServerID()
	status.State = s.State
	status.LastHandledReconcileAt = c.Annotations[v1.ReconcileAtAnnotation] // the dial was asked for before this report
	if f.endpoint.pod != nil || s.State != v1.ConnectorUp {
		status.Pod = f.endpoint.pod // a pod that is no longer ready keeps serving until its connection ends
	}
	status.SessionGeneration = max(status.SessionGeneration, s.Generation)
	if s.Peer.Negotiated != "" && s.State == v1.ConnectorUp {
		status.ServerInfo = &v1.ServerInfo{Name: s.Peer.Name, Version: s.Peer.Version}
		status.UnavailableFeatures = s.Peer.Unavailable
		status.ManifestRevision = s.Peer.Manifest
	}
	status.EffectiveCapabilities = nil
	if s.State == v1.ConnectorUp {
		status.EffectiveCapabilities = s.Peer.Capabilities
	}
	status.Channels = &v1.ChannelCounts{
		Registered: int32(s.Registered), Open: int32(s.Open), TunedOut: int32(s.TunedOut), Unsettled: int32(s.Unsettled),
	}
}

// connectorConditions says how it is with a Connector.
func connectorConditions(c *v1.Connector, f facts) []metav1.Condition {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	if f.duplicateOf != "" {
		message := fmt.Sprintf("Connector %s is older and serves serverID %s; this one does nothing. Delete it, or make it anew with another spec.serverID.", f.duplicateOf, c.EffectiveServerID())
		return []metav1.Condition{
			condition(v1.ConditionConnected, metav1.ConditionFalse, v1.ReasonDuplicateServerID, message),
			condition(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonDuplicateServerID, message),
			condition(v1.ConditionStalled, metav1.ConditionTrue, v1.ReasonDuplicateServerID, message),
		}
	}
	connected, negotiated := connectedCondition(c, f), negotiatedCondition(f)
	ready := condition(v1.ConditionReady, connected.Status, connected.Reason, connected.Message)
	if connected.Status == metav1.ConditionTrue {
		ready = condition(v1.ConditionReady, negotiated.Status, negotiated.Reason, negotiated.Message)
	}
	conditions := []metav1.Condition{connected, negotiated, ready}
	if ready.Status != metav1.ConditionTrue {
		conditions = append(conditions, condition(v1.ConditionReconciling, metav1.ConditionTrue, ready.Reason, ready.Message))
	}
	if f.snapshot.Refused > 0 {
		conditions = append(conditions, condition(v1.ConditionLimitReached, metav1.ConditionTrue, "MaxChannels",
			fmt.Sprintf("%d channels were refused: spec.maxChannels is %d. Raise it to have them registered when the connector registers again.", f.snapshot.Refused, c.Spec.MaxChannels)))
	}
	if c.Spec.Transport.Insecure && c.Spec.Transport.TLS == nil && !strings.HasPrefix(c.Spec.URL, "wss://") {
		conditions = append(conditions, condition(v1.ConditionInsecure, metav1.ConditionTrue, "NotEncrypted",
			"The connection is not encrypted, since spec.transport.insecure allows it: whoever can listen in the network reads the token and every message."))
	}
	return conditions
}

func connectedCondition(connector *v1.Connector, f facts) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionConnected}
	s := f.snapshot
	switch {
	case f.suspended:
		c.Status, c.Reason = metav1.ConditionFalse, v1.ReasonSuspended
		c.Message = "The connector is disconnected because spec.suspend is set. What is decided is recorded, and applied once that is lifted."
	case s.State == v1.ConnectorUp:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1.ReasonUp, "The connector is connected."
	case f.endpoint.trouble.Reason != "":
		c.Status, c.Reason = metav1.ConditionFalse, f.endpoint.trouble.Reason
		c.Message = sentence(f.endpoint.trouble.Message) + " What is decided stands, and is applied once it is connected."
	case s.Trouble.Reason == "" || s.Trouble.Reason == v1.ReasonConnecting:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1.ReasonConnecting, "The connector is being dialled."
	default:
		c.Status, c.Reason = metav1.ConditionFalse, s.Trouble.Reason
		c.Message = sentence(s.Trouble.Message) + hint(connector, s.Trouble.Reason) + " The connector is dialled again after a wait that grows to 5 minutes. What is decided stands, and is applied once it is connected."
	}
	return c
}

// hint says where to look for what makes a dial fail.
func hint(c *v1.Connector, reason string) string {
	switch ref := c.Spec.Transport.TokenSecretRef; {
	case reason == v1.ReasonTokenRefused && ref != nil:
		return " The token comes from Secret " + ref.Name + ", which is read again at each dial."
	case reason == v1.ReasonTokenRefused:
		return " No token is sent: see spec.transport.tokenSecretRef."
	case reason == v1.ReasonNotMCPL:
		return " See spec.transport.port and spec.transport.path."
	}
	return ""
}

func negotiatedCondition(f facts) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionNegotiated, Status: metav1.ConditionFalse, Reason: f.snapshot.Peer.Negotiated}
	if f.snapshot.State != v1.ConnectorUp && c.Reason != v1.ReasonRefusedClose {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1.ReasonNotNegotiated, "There is no connection to negotiate on."
		return c
	}
	switch c.Reason {
	case v1.ReasonGranted:
		c.Status, c.Message = metav1.ConditionTrue, "The connector accepted the grant."
	case v1.ReasonDegraded:
		c.Status, c.Message = metav1.ConditionTrue, "The connector accepted the grant; under it some of its features are off: see status.unavailableFeatures and spec.grant."
	case v1.ReasonRefusedMCPOnly:
		c.Message = "The connector refused the grant and is a plain MCP server now: none of its channels is served. It is asked again at the next connection. What is decided stands."
	case v1.ReasonRefusedClose:
		c.Message = "The connector refused the grant and wants no connection. It is asked again when it is dialled again."
	case v1.ReasonPolicyTimeout:
		c.Message = "The connector did not answer the policy request within 15 s: nothing is granted, and none of its channels is served."
	}
	return c
}

// sentence makes a fragment the beginning of a message. A path of a field keeps its case.
func sentence(s string) string {
	first, _, _ := strings.Cut(s, " ")
	if s != "" && !strings.ContainsRune(first, '.') {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}
