package decision

import v1 "mcpl.dev/operator/api/v1alpha1"

// class is who stands behind a source.
type class int

const (
	nobody class = iota
	resident
	module
	machine
	connector
	policy
	incidental
	tuneOutEnd
	importOnly
)

// sourceRules is one row of the table of sources (semantics §3.3, §4.1, §4.2).
type sourceRules struct {
	class class
	// word is the literal that tools and the wire write.
	word string
}

// sources is the whole vocabulary: a new source is a new row, and nothing else.
var sources = map[v1.Source]sourceRules{
	v1.SourceAgentTool:             {resident, "agent-tool"},
	v1.SourceInvitationDeclined:    {resident, "invitation-declined"},
	v1.SourceModuleTool:            {module, "module-tool"},
	v1.SourceSubscriptionGC:        {machine, "subscription-gc"},
	v1.SourceHousekeeping:          {machine, "housekeeping"},
	v1.SourceDefaultClosed:         {nobody, "default-closed"},
	v1.SourceServerBootstrap:       {connector, "server-bootstrap"},
	v1.SourceSubscriptionPolicy:    {policy, "subscription-policy"},
	v1.SourceOpenedByDelivery:      {incidental, "opened-by-delivery"},
	v1.SourceOpenedByReply:         {incidental, "opened-by-reply"},
	v1.SourceSubconscious:          {tuneOutEnd, "subconscious"},
	v1.SourceDuration:              {tuneOutEnd, "duration"},
	v1.SourceTuneOutMaxWakes:       {tuneOutEnd, "tune-out-max-wakes"},
	v1.SourceLegacyRecipeMigration: {importOnly, "legacy-recipe-migration"},
	v1.SourceUnknown:               {importOnly, "unknown"},
}

// Deliberate reports whether a close from this source is somebody's own: the resident's, a
// decline, or a module's. Such a close may be written over another's, and speech never lifts it.
func Deliberate(s v1.Source) bool {
	c := sources[s].class
	return c == resident || c == module
}

// Machine reports whether the source is host automation, which closes only what nobody opened on purpose.
func Machine(s v1.Source) bool { return sources[s].class == machine }

// ExplicitOpen reports whether the record is protected from a machine's close without a lease:
// an open, or a tune-out, that the resident asked for (semantics §2).
func ExplicitOpen(r Record) bool {
	return r.WantsOpen() && r.Source == v1.SourceAgentTool
}
