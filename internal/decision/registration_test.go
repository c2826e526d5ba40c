package decision

import (
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

func TestRegister(t *testing.T) {
	wish := Announcement{InitiallyOpen: true}
	admitted := Announcement{Admitted: true}
	both := Announcement{InitiallyOpen: true, Admitted: true}
	bootstrap := Admission{Write: write(v1.StateOpen, v1.SourceServerBootstrap), Apply: true}
	byPolicy := Admission{Write: write(v1.StateOpen, v1.SourceSubscriptionPolicy), PolicyNotice: true, Apply: true}
	stands := Admission{Apply: true}

	cases := map[string]struct {
		record     Record
		announced  Announcement
		undirected bool
		want       Admission
	}{
		"A01 no record and nobody asks: it starts closed": {want: Admission{Write: write(v1.StateClosed, v1.SourceDefaultClosed), Apply: true}},
		"A02 no record, initiallyOpen":                    {announced: wish, want: bootstrap},
		"A03 no record, the policy admits it":             {announced: admitted, want: byPolicy},
		"both ask: it is the connector's, without notice": {announced: both, want: bootstrap},

		"A05 default-closed, registered again with initiallyOpen": {record: closedBy(v1.SourceDefaultClosed), announced: wish, want: bootstrap},
		"A05 the same while it is not stored":                     {record: undecided, announced: wish, want: bootstrap},
		"A06 default-closed, and the policy starts admitting":     {record: closedBy(v1.SourceDefaultClosed), announced: admitted, want: byPolicy},
		"A06 the same while it is not stored":                     {record: undecided, announced: admitted, want: byPolicy},
		"default-closed and nobody asks: the close is sent again": {record: undecided, want: stands},

		"A07 the resident's close, initiallyOpen":            {record: closedBy(v1.SourceAgentTool), announced: wish, want: stands},
		"A07 the resident's close, policy":                   {record: closedBy(v1.SourceAgentTool), announced: admitted, want: stands},
		"A08 declined, both":                                 {record: closedBy(v1.SourceInvitationDeclined), announced: both, want: stands},
		"A09 closed by SubscriptionGC, both":                 {record: closedBy(v1.SourceSubscriptionGC), announced: both, want: stands},
		"A10 imported, both: not lifted":                     {record: closedBy(v1.SourceLegacyRecipeMigration), announced: both, want: stands},
		"closed by a module, both":                           {record: closedBy(v1.SourceModuleTool), announced: both, want: stands},
		"I02 imported without a readable source, both":       {record: closedBy(v1.SourceUnknown), announced: both, want: stands},
		"A04 selected before: opened again, told of no more": {record: openBy(v1.SourceSubscriptionPolicy), announced: admitted, want: stands},
		"open, and nobody asks any more: the record stands":  {record: openBy(v1.SourceServerBootstrap), want: stands},
		"tuned out": {record: tunedOut(), announced: both, want: stands},

		"A12 the host does not direct: no record": {announced: both, undirected: true},
		"A12 the same over a record":              {record: closedBy(v1.SourceAgentTool), undirected: true},
		"A12 the same over an open":               {record: openBy(v1.SourceAgentTool), undirected: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.want, Register(tc.record, tc.announced, !tc.undirected))
		})
	}
}

// TestRegisterEverything goes through the whole of §5.1: the table has no hole.
func TestRegisterEverything(t *testing.T) {
	for _, record := range everyRecord() {
		for i := range 8 {
			a, directs := Announcement{InitiallyOpen: i&1 != 0, Admitted: i&2 != 0}, i&4 != 0
			nobodys := record.State == "" || record == undecided || record == closedBy(v1.SourceDefaultClosed)
			var want Admission
			switch {
			case !directs:
			case nobodys && a.InitiallyOpen:
				want = Admission{Write: write(v1.StateOpen, v1.SourceServerBootstrap), Apply: true}
			case nobodys && a.Admitted:
				want = Admission{Write: write(v1.StateOpen, v1.SourceSubscriptionPolicy), PolicyNotice: true, Apply: true}
			case record.State == "":
				want = Admission{Write: write(v1.StateClosed, v1.SourceDefaultClosed), Apply: true}
			default:
				want = Admission{Apply: true}
			}
			same(t, want, Register(record, a, directs))

			lift, lifted := Lift(record, a)
			same(t, nobodys && (a.InitiallyOpen || a.Admitted), lifted)
			if directs && lifted {
				same(t, want.Write, &lift)
			}
		}
	}
}

func TestAdmits(t *testing.T) {
	allow := func(patterns ...string) v1.Subscription {
		return v1.Subscription{Mode: v1.SubscriptionAllowList, Allow: patterns}
	}
	const id = "discord:111:222"
	cases := map[string]struct {
		subscription v1.Subscription
		id, platform string
		want         bool
	}{
		"Manual admits none":                     {subscription: v1.Subscription{Mode: v1.SubscriptionManual}, id: id},
		"no mode admits none":                    {id: id},
		"an unknown mode admits none":            {subscription: v1.Subscription{Mode: "Some", Allow: []string{"*"}}, id: id},
		"Manual reads no list":                   {subscription: v1.Subscription{Mode: v1.SubscriptionManual, Allow: []string{id}}, id: id},
		"Auto admits every one":                  {subscription: v1.Subscription{Mode: v1.SubscriptionAuto}, id: id, want: true},
		"an empty list admits none":              {subscription: allow(), id: id},
		"the id itself":                          {subscription: allow("x", id), id: id, want: true},
		"A11 the platform's own id":              {subscription: allow("222"), id: id, platform: "222", want: true},
		"A11 a glob of the platform's own id":    {subscription: allow("2*"), id: id, platform: "222", want: true},
		"another id":                             {subscription: allow("discord:111:223"), id: id, platform: "222"},
		"a beginning is no match":                {subscription: allow("discord:111"), id: id},
		"an end is no match":                     {subscription: allow("222"), id: id},
		"case matters":                           {subscription: allow("Discord:111:222"), id: id},
		"star at the end":                        {subscription: allow("discord:111:*"), id: id, want: true},
		"star at the end, of another guild":      {subscription: allow("discord:112:*"), id: id},
		"star in the middle":                     {subscription: allow("discord:*:222"), id: id, want: true},
		"star at both ends":                      {subscription: allow("*:111:*"), id: id, want: true},
		"star alone":                             {subscription: allow("*"), id: id, want: true},
		"star is any run, the empty one too":     {subscription: allow("discord:111:222*"), id: id, want: true},
		"star passes slashes":                    {subscription: allow("irc:*"), id: "irc:net/#a/b", want: true},
		"star passes slashes in the middle":      {subscription: allow("a*d"), id: "a/b/c/d", want: true},
		"slash is itself":                        {subscription: allow("a/b*"), id: "a/bc", want: true},
		"slash is nothing else":                  {subscription: allow("a/b*"), id: "a:bc"},
		"question mark is any one character":     {subscription: allow("room-?"), id: "room-é", want: true},
		"question mark is a slash, too":          {subscription: allow("a?b"), id: "a/b", want: true},
		"question mark is not two characters":    {subscription: allow("room-?"), id: "room-12"},
		"brackets are themselves":                {subscription: allow("[ab]*"), id: "[ab]c", want: true},
		"brackets are no class":                  {subscription: allow("[ab]*"), id: "ac"},
		"a bracket that never closes":            {subscription: allow("a[*"), id: "a[b", want: true},
		"a bracket that only closes":             {subscription: allow("a]*"), id: "a]b", want: true},
		"a caret and a dash are themselves":      {subscription: allow("[^a-z]*"), id: "[^a-z]!", want: true},
		"a backslash is itself":                  {subscription: allow(`dom\*`), id: `dom\user`, want: true},
		"a backslash escapes nothing":            {subscription: allow(`a\*b`), id: "a*b"},
		"a backslash at the end":                 {subscription: allow(`*\`), id: `dom\`, want: true},
		"a backslash before a bracket":           {subscription: allow(`\[a]*`), id: `\[a]b`, want: true},
		"an id with a star in it":                {subscription: allow("a*b"), id: "a*b", want: true},
		"an id with a bracket, itself":           {subscription: allow(`m[1]\x`), id: `m[1]\x`, want: true},
		"non-Latin":                              {subscription: allow("комната-*"), id: "комната-один", want: true},
		"no platform id is no empty one":         {subscription: allow(""), id: id},
		"a star is no platform id where none is": {subscription: allow("x*"), id: id},
		"the second of the list":                 {subscription: allow("nope", "disc*"), id: id, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.want, Admits(tc.subscription, tc.id, tc.platform))
		})
	}
}
