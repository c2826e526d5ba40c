package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ConnectorSpec says where a connector is, how to reach it and which of its channels are wanted.
// +kubebuilder:validation:XValidation:rule="has(self.podSelector) != has(self.url)",message="exactly one of spec.podSelector and spec.url must be set"
// +kubebuilder:validation:XValidation:rule="self.transport.insecure || has(self.transport.tls) || (has(self.url) && self.url.startsWith('wss://'))",message="spec.transport.tls is not set: set it, use a wss:// url, or set spec.transport.insecure to true to accept an unencrypted connection"
// +kubebuilder:validation:XValidation:rule="!has(self.transport.tls) || has(self.url) || has(self.transport.tls.serverName)",message="spec.transport.tls.serverName must be set for a pod: the address of a pod is no name that a certificate bears"
// +kubebuilder:validation:XValidation:rule="!has(self.transport.tls) || !has(self.url) || self.url.startsWith('wss://')",message="spec.transport.tls needs a wss:// url"
// +kubebuilder:validation:XValidation:rule="self.transport.type != 'TCP' || (has(self.podSelector) && self.transport.insecure && !has(self.transport.tls) && !has(self.transport.tokenSecretRef))",message="spec.transport.type TCP has neither token nor encryption: it needs spec.podSelector and spec.transport.insecure, and takes no spec.transport.tls and no spec.transport.tokenSecretRef"
type ConnectorSpec struct {
	// serverID is the connector's name in records, tools and composite ids: a DNS label of at
	// most 45 characters. Absent means metadata.name. The effective value never changes: a
	// rename is a new Connector with the old serverID.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ServerID string `json:"serverID,omitempty"`

	// residentRef names the Resident whose channels these are: only its decisions hold here.
	// +required
	ResidentRef NameReference `json:"residentRef"`

	// podSelector selects the connector's pod in this namespace. It is served while exactly one
	// pod that matches is Ready and not terminating. It can not be empty. Exactly one of
	// podSelector and url.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="spec.podSelector must not be empty: it would select every pod of the namespace"
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// url of a connector outside the cluster, ws:// or wss://. Refused at run time unless the
	// manager was started with --allow-connector-urls. Exactly one of podSelector and url.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^wss?://[^/?#@\s]+(/[^?#\s]*)?(\?[^#\s]*)?$`
	URL string `json:"url,omitempty"`

	// transport is how to speak to it.
	// +optional
	// +kubebuilder:default={}
	Transport ConnectorTransport `json:"transport,omitempty"`

	// grant takes capabilities away from what the connector advertises.
	// +optional
	Grant *ConnectorGrant `json:"grant,omitempty"`

	// subscription says which channels are opened when nobody has decided. It only ever lifts
	// what nobody decided: it never closes a channel and never opens one that somebody closed.
	// +optional
	// +kubebuilder:default={}
	Subscription Subscription `json:"subscription,omitempty"`

	// channels is Discover (default: a Channel object is made for whatever the connector
	// declares) or Declared (only channels that have a Channel object are served; every other one
	// is closed once per registration and its messages are refused).
	// +optional
	// +kubebuilder:default=Discover
	// +kubebuilder:validation:Enum=Discover;Declared
	Channels ChannelsMode `json:"channels,omitempty"`

	// maxChannels bounds how many channels the connector may register; further ones are refused
	// and the condition LimitReached says so. 1 to 20,000, default 2,000.
	// +optional
	// +kubebuilder:default=2000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20000
	MaxChannels int32 `json:"maxChannels,omitempty"`

	// window is how many requests may be in flight to the connector at once. Connectors work
	// through requests one after another, so a larger window does not make them faster.
	// 1 to 64, default 4.
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Window int32 `json:"window,omitempty"`

	// hold keeps all channels of the connector closed, whatever is decided of them.
	// +optional
	Hold *Hold `json:"hold,omitempty"`

	// suspend disconnects the connector, which then counts as Gone: decisions are recorded, nothing
	// is sent. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// requestTimeoutSeconds is how long a request may stay unanswered, in seconds, counted from
	// the moment it was written. 0 means no limit, except for opens and closes, which keep 60.
	// 0 to 3,600, default 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	RequestTimeoutSeconds *int32 `json:"requestTimeoutSeconds,omitempty"`
}

// ChannelsMode says whether Channel objects are made by the operator or only by people.
type ChannelsMode string

// The two modes.
const (
	ChannelsDiscover ChannelsMode = "Discover"
	ChannelsDeclared ChannelsMode = "Declared"
)

// ConnectorTransport is how to speak to a connector.
type ConnectorTransport struct {
	// type of the transport: WebSocket (default), or TCP, which has neither token nor tls and
	// therefore needs insecure.
	// +optional
	// +kubebuilder:default=WebSocket
	// +kubebuilder:validation:Enum=WebSocket;TCP
	Type TransportType `json:"type,omitempty"`

	// port of the pod, as a number or the name of a container's port. Default "mcpl". Not read for a url.
	// +optional
	// +kubebuilder:default=mcpl
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 65535 : self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="spec.transport.port must be a number from 1 to 65535 or the name of a container's port"
	Port *intstr.IntOrString `json:"port,omitempty"`

	// path of the WebSocket. Default /mcpl. Not read for a url.
	// +optional
	// +kubebuilder:default=/mcpl
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[^?#\s]*$`
	Path string `json:"path,omitempty"`

	// tokenSecretRef names the key of a Secret whose value is sent as a bearer token (to a url as
	// the query parameter token). It is read afresh at every dial. Absent means no token.
	// +optional
	TokenSecretRef *SecretKeyReference `json:"tokenSecretRef,omitempty"`

	// tls encrypts the connection and checks who answers. Absent means unencrypted, which needs insecure.
	// +optional
	TLS *ConnectorTLS `json:"tls,omitempty"`

	// insecure accepts an unencrypted connection; the condition Insecure then says so. Default false.
	// +optional
	// +kubebuilder:default=false
	Insecure bool `json:"insecure"`
}

// TransportType is the protocol below MCPL.
type TransportType string

// The transports.
const (
	// TransportWebSocket carries one message in each text frame.
	TransportWebSocket TransportType = "WebSocket"
	// TransportTCP carries one message in each line.
	TransportTCP TransportType = "TCP"
)

// ConnectorTLS says whom to trust and as whom to appear.
type ConnectorTLS struct {
	// caSecretRef names a Secret whose key ca.crt holds the certificates (PEM) that may have
	// signed the connector's. Absent means the system's.
	// +optional
	CASecretRef *NameReference `json:"caSecretRef,omitempty"`

	// serverName is the name that the connector's certificate must bear. Absent means the host of
	// the url; for a pod it is required, since a pod's address is no name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServerName string `json:"serverName,omitempty"`

	// clientCertSecretRef names a Secret of type kubernetes.io/tls (tls.crt, tls.key) to present.
	// +optional
	ClientCertSecretRef *NameReference `json:"clientCertSecretRef,omitempty"`
}

// SecretKeyReference names one key of a Secret of the same namespace.
type SecretKeyReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key within it. Default token.
	// +optional
	// +kubebuilder:default=token
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ConnectorGrant narrows what the connector may do.
type ConnectorGrant struct {
	// deny lists capability paths that are not granted, such as channels.streaming. A pattern
	// covers everything below it, and * stands for exactly one segment. At most 64 of 256 characters.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^([A-Za-z]+|\*)(\.([A-Za-z]+|\*))*$`
	Deny []string `json:"deny,omitempty"`
}

// Subscription is the policy for channels that nobody decided.
// +kubebuilder:validation:XValidation:rule="!has(self.allow) || self.mode == 'AllowList'",message="spec.subscription.allow is only read in mode AllowList: set spec.subscription.mode to AllowList or remove the list"
type Subscription struct {
	// mode is Manual (default: none is opened), Auto (every channel is) or AllowList.
	// +optional
	// +kubebuilder:default=Manual
	// +kubebuilder:validation:Enum=Manual;Auto;AllowList
	Mode SubscriptionMode `json:"mode,omitempty"`

	// allow lists channel ids, the platform's own ids, or globs of either (* is any run of
	// characters, ? any one). At most 1,000 of 256 characters. Read in mode AllowList only.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Allow []string `json:"allow,omitempty"`
}

// SubscriptionMode says how a subscription admits channels.
type SubscriptionMode string

// The modes.
const (
	SubscriptionManual    SubscriptionMode = "Manual"
	SubscriptionAuto      SubscriptionMode = "Auto"
	SubscriptionAllowList SubscriptionMode = "AllowList"
)

// ConnectorStatus is what is known of a connector.
type ConnectorStatus struct {
	// observedGeneration is the generation that this status is about; -1 until the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// serverID is the effective one.
	// +optional
	ServerID string `json:"serverID,omitempty"`

	// state of the connection: Connecting, Up, Reconnecting or Gone.
	// +optional
	State ConnectorState `json:"state,omitempty"`

	// pod that serves it.
	// +optional
	Pod *ConnectorPod `json:"pod,omitempty"`

	// sessionGeneration counts the handshakes since the Connector was made.
	// +optional
	SessionGeneration int64 `json:"sessionGeneration,omitempty"`

	// serverInfo is what the connector calls itself. It is the connector's own word.
	// +optional
	ServerInfo *ServerInfo `json:"serverInfo,omitempty"`

	// effectiveCapabilities are the capability paths granted on this connection, sorted.
	// +optional
	// +listType=atomic
	EffectiveCapabilities []string `json:"effectiveCapabilities,omitempty"`

	// unavailableFeatures are the feature sets that the connector turned off under this grant.
	// +optional
	// +listType=atomic
	UnavailableFeatures []string `json:"unavailableFeatures,omitempty"`

	// lastHandledReconcileAt is the value of the annotation mcpl.dev/reconcile-at that was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// manifestRevision is the digest of what the connector advertises now.
	// +optional
	ManifestRevision string `json:"manifestRevision,omitempty"`

	// channels counts the connector's channels. Written with a condition's change, or when it comes to rest.
	// +optional
	Channels *ChannelCounts `json:"channels,omitempty"`

	// conditions are Connected, Negotiated, LimitReached, Insecure, Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConnectorPod is the pod that serves a connector.
type ConnectorPod struct {
	// name of the pod.
	Name string `json:"name"`
	// uid of the pod: another pod of the same name is another pod.
	UID string `json:"uid"`
}

// ServerInfo is what a connector calls itself.
type ServerInfo struct {
	// name, at most 128 characters.
	// +optional
	Name string `json:"name,omitempty"`
	// version, at most 128 characters.
	// +optional
	Version string `json:"version,omitempty"`
}

// ChannelCounts counts channels.
type ChannelCounts struct {
	// registered with the connector now.
	Registered int32 `json:"registered"`
	// open: confirmed open.
	Open int32 `json:"open"`
	// tunedOut: decided TunedOut.
	TunedOut int32 `json:"tunedOut"`
	// unsettled: not confirmed to be what is decided.
	Unsettled int32 `json:"unsettled"`
}

// Condition types of a Connector.
const (
	// ConditionConnected is True while the connector is Up.
	ConditionConnected = "Connected"
	// ConditionNegotiated says what became of the policy handshake.
	ConditionNegotiated = "Negotiated"
	// ConditionLimitReached is there only while channels were refused for maxChannels.
	ConditionLimitReached = "LimitReached"
	// ConditionInsecure is there only while the connection is not encrypted.
	ConditionInsecure = "Insecure"
)

// Reasons of Connected.
const (
	// ReasonUp: connected and negotiated.
	ReasonUp = "Up"
	// ReasonNoReadyPod: no pod matches the selector, or none that may serve.
	ReasonNoReadyPod = "NoReadyPod"
	// ReasonAmbiguousPods: several ready pods match the selector.
	ReasonAmbiguousPods = "AmbiguousPods"
	// ReasonImagePullFailed: the pod's image can't be pulled.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonCrashLooping: a container of the pod ends again and again.
	ReasonCrashLooping = "CrashLooping"
	// ReasonPodNotReady: the pod is there and not Ready.
	ReasonPodNotReady = "PodNotReady"
	// ReasonDialFailed: nothing answered at the address, or the endpoint may not be dialled.
	ReasonDialFailed = "DialFailed"
	// ReasonTokenRefused: the connector refused the token, or there is none to send.
	ReasonTokenRefused = "TokenRefused"
	// ReasonNotMCPL: what answered does not speak MCPL.
	ReasonNotMCPL = "NotMCPL"
	// ReasonHandshakeFailed: the handshake broke off.
	ReasonHandshakeFailed = "HandshakeFailed"
	// ReasonOtherHost: another host holds the connector.
	ReasonOtherHost = "OtherHost"
	// ReasonConnecting: the first dial is under way.
	ReasonConnecting = "Connecting"
	// ReasonConnectionLost: an established connection was lost; it is dialled again.
	ReasonConnectionLost = "ConnectionLost"
)

// Reasons of Negotiated.
const (
	// ReasonGranted: the connector accepted the grant.
	ReasonGranted = "Granted"
	// ReasonDegraded: it accepted the grant and turned features off.
	ReasonDegraded = "Degraded"
	// ReasonRefusedMCPOnly: it refused the grant and goes on as a plain MCP server.
	ReasonRefusedMCPOnly = "RefusedMCPOnly"
	// ReasonRefusedClose: it refused the grant and wants no connection.
	ReasonRefusedClose = "RefusedClose"
	// ReasonPolicyTimeout: it did not answer the policy request in time.
	ReasonPolicyTimeout = "PolicyTimeout"
	// ReasonNotNegotiated: there is no connection to negotiate on.
	ReasonNotNegotiated = "NotNegotiated"
)

// ReasonDuplicateServerID: an older Connector has the same serverID and serves it.
const ReasonDuplicateServerID = "DuplicateServerID"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=mcpl,shortName=conn
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.status.pod.name`
// +kubebuilder:printcolumn:name="Resident",type=string,JSONPath=`.spec.residentRef.name`
// +kubebuilder:printcolumn:name="Channels",type=integer,JSONPath=`.status.channels.registered`
// +kubebuilder:printcolumn:name="Open",type=integer,JSONPath=`.status.channels.open`
// +kubebuilder:printcolumn:name="Unsettled",type=integer,JSONPath=`.status.channels.unsettled`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Server-ID",type=string,priority=1,JSONPath=`.status.serverID`
// +kubebuilder:printcolumn:name="Session",type=integer,priority=1,JSONPath=`.status.sessionGeneration`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 45 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label of at most 45 characters"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.serverID) ? self.spec.serverID : self.metadata.name) == (has(oldSelf.spec.serverID) ? oldSelf.spec.serverID : oldSelf.metadata.name)",message="spec.serverID (metadata.name where it is absent) can not be changed: to rename, make a new Connector with the old serverID"

// Connector is a process that speaks MCPL to a chat platform, and the operator's one connection to it.
type Connector struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where the connector is and what is wanted of it.
	// +required
	Spec ConnectorSpec `json:"spec"`

	// status is what is known of it.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ConnectorStatus `json:"status,omitempty"`
}

// EffectiveServerID is spec.serverID, or the object's name where it is absent.
func (c *Connector) EffectiveServerID() string {
	if c.Spec.ServerID != "" {
		return c.Spec.ServerID
	}
	return c.Name
}

// +kubebuilder:object:root=true

// ConnectorList is a list of Connectors.
type ConnectorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Connector `json:"items"`
}
