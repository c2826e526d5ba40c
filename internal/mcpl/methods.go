package mcpl

// Methods of the wire (semantics §12.2, §12.4, §12.7).
const (
	MethodInitialize          = "initialize"
	MethodInitialized         = "notifications/initialized"
	MethodPing                = "ping"
	MethodToolsListChanged    = "notifications/tools/list_changed"
	MethodFeatureSetsUpdate   = "featureSets/update"
	MethodManifest            = "mcpl/manifest"
	MethodManifestChanged     = "mcpl/manifestChanged"
	MethodChannelsRegister    = "channels/register"
	MethodChannelsChanged     = "channels/changed"
	MethodChannelsList        = "channels/list"
	MethodChannelsOpen        = "channels/open"
	MethodChannelsClose       = "channels/close"
	MethodChannelsAcknowledge = "channels/acknowledge"
	MethodChannelsPublish     = "channels/publish"
	MethodChannelsTyping      = "channels/typing"
	MethodChannelsIncoming    = "channels/incoming"
	MethodPushEvent           = "push/event"
)

// Error codes of the wire (semantics §12.5).
const (
	CodeGeneric             = -32000 // connector-side generic failure
	CodeFeatureSetDisabled  = -32001 // data {featureSet}
	CodeNotPermitted        = -32002 // method not in the grant; data {capability}
	CodeFeatureSetUnknown   = -32003 // data {featureSet}
	CodeChannelNotPermitted = -32017
	CodeChannelUnknown      = -32023
	CodeOpenFailed          = -32024
	CodeInvalidRequest      = -32600
	CodeMethodNotFound      = -32601
	CodeInvalidParams       = -32602
	CodeInternal            = -32603 // what connectors mostly answer
)

// inboundCapability says which capability a connector needs for a method it
// sends; "" means that none is needed. What is not listed is not served.
var inboundCapability = map[string]string{
	MethodPing:             "",
	MethodToolsListChanged: "",
	MethodManifestChanged:  "",
	MethodChannelsRegister: CapChannelsRegister,
	MethodChannelsChanged:  CapChannelsRegister,
	MethodChannelsList:     CapChannelsRegister,
	MethodChannelsIncoming: CapChannelsIncoming,
	MethodPushEvent:        CapPushEvents,
}

// InboundCapability returns the capability path that a connector must have been
// granted to send method; "" means that none is needed. served is false for a
// method the host does not serve: a request for it is answered with
// CodeMethodNotFound, a notification is ignored.
func InboundCapability(method string) (capability string, served bool) {
	capability, served = inboundCapability[method]
	return capability, served
}
