package pair

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

const (
	longestServerID  = 45
	longestChannelID = 2048
	longestName      = 63
)

// TestNames holds values that must never change: objects in the cluster have these names. The
// hexadecimal digits are those of sha256(serverID, NUL, channelID), made elsewhere.
func TestNames(t *testing.T) {
	cases := map[string]struct {
		serverID, channelID string
		record, discovered  string
	}{
		"an id of a platform": {
			serverID: "discord", channelID: "discord:111:222",
			record: "discord-0356952104165f32", discovered: "discord-discord-111-222-0356952104",
		},
		"punctuation around letters": {
			serverID: "matrix", channelID: "!abc:example.org",
			record: "matrix-8cffae789218a9f3", discovered: "matrix-abc-example-org-8cffae7892",
		},
		"punctuation at both ends takes no room": {
			serverID: "slack", channelID: "!!C0123456789ABCDEFGHIJKLMNOP!!",
			record: "slack-bb5ce24c64e7202e", discovered: "slack-23456789abcdefghijklmnop-bb5ce24c64",
		},
		"nothing but punctuation": {
			serverID: "a", channelID: "***",
			record: "a-69d47bedc545bd1d", discovered: "a-69d47bedc5",
		},
		"nothing but other scripts": {
			serverID: "irc", channelID: "комната",
			record: "irc-ccd9e530368e3fa3", discovered: "irc-ccd9e53036",
		},
		"other scripts around letters": {
			serverID: "zulip", channelID: "#général/тема",
			record: "zulip-b2bf8f7140af663e", discovered: "zulip-g-n-ral-b2bf8f7140",
		},
		"both too long: their ends are kept, where ids differ": {
			serverID: "slack-" + strings.Repeat("x", 39), channelID: "C0123456789ABCDEFGHIJKLMNOP",
			record:     "slack-" + strings.Repeat("x", 39) + "-41ec25f71bacac69",
			discovered: strings.Repeat("x", 25) + "-23456789abcdefghijklmnop-41ec25f71b",
		},
		"both as long as can be": {
			serverID: strings.Repeat("s", longestServerID), channelID: strings.Repeat("x", longestChannelID),
			record:     strings.Repeat("s", 45) + "-6dd9db1121be988e",
			discovered: strings.Repeat("s", 25) + "-" + strings.Repeat("x", 24) + "-6dd9db1121",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			key := Key{Namespace: "residents", ServerID: tc.serverID, ChannelID: tc.channelID}
			if got := key.RecordName(); got != tc.record {
				t.Errorf("RecordName() = %s, want %s", got, tc.record)
			}
			if got := key.DiscoveredName(); got != tc.discovered {
				t.Errorf("DiscoveredName() = %s, want %s", got, tc.discovered)
			}
			if got := key.String(); got != tc.serverID+":"+tc.channelID {
				t.Errorf("String() = %s", got)
			}
		})
	}
}

// TestNothingElseHasAPart: a label changes and a namespace is where the object is, so a name has
// neither. A new field of Key must not slip into the names, or out of the maps that it is the key of.
func TestNothingElseHasAPart(t *testing.T) {
	var fields []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Key]()) {
		fields = append(fields, field.Name)
	}
	if want := []string{"Namespace", "ServerID", "ChannelID"}; !reflect.DeepEqual(fields, want) {
		t.Errorf("the fields are %v, want %v", fields, want)
	}
	a, b := Key{Namespace: "a", ServerID: "s", ChannelID: "c"}, Key{Namespace: "b", ServerID: "s", ChannelID: "c"}
	if a.RecordName() != b.RecordName() || a.DiscoveredName() != b.DiscoveredName() {
		t.Error("the namespace has a part in the names")
	}
}

// checkNames holds what must be so of the names of every pair.
func checkNames(t interface{ Errorf(string, ...any) }, key Key) {
	for of, name := range map[string]string{"record": key.RecordName(), "Channel": key.DiscoveredName()} {
		if len(name) > longestName {
			t.Errorf("the %s of %q has a name of %d characters: %s", of, key, len(name), name)
		}
		if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
			t.Errorf("the %s of %q is named %s: %s", of, key, name, faults)
		}
		if strings.Contains(strings.TrimPrefix(name, key.ServerID), "--") && !strings.Contains(key.ServerID, "--") {
			t.Errorf("the %s of %q has two dashes in a row: %s", of, key, name)
		}
	}
	if !strings.HasPrefix(key.RecordName(), key.ServerID+"-") || len(key.RecordName()) != len(key.ServerID)+17 {
		t.Errorf("the record of %q is named %s", key, key.RecordName())
	}
}

func TestPropertyNamesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := Key{
			ServerID:  rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,43}[a-z0-9])?`).Draw(t, "serverID"),
			ChannelID: rapid.StringN(1, -1, longestChannelID).Draw(t, "channelID"),
		}
		checkNames(t, key)
		if again := (Key{ServerID: key.ServerID, ChannelID: key.ChannelID}); again.RecordName() != key.RecordName() || again.DiscoveredName() != key.DiscoveredName() {
			t.Errorf("%q has two names", key)
		}
	})
}

// TestNamesOfHardIDs goes through serverIDs and ids that a cut or a slug might spoil.
func TestNamesOfHardIDs(t *testing.T) {
	serverIDs := []string{
		"a", "0", "a-b", "a--b", strings.Repeat("a", longestServerID),
		strings.Repeat("a", 20) + "-" + strings.Repeat("b", 24), // the cut falls before the dash
		strings.Repeat("a", 19) + "-" + strings.Repeat("b", 25), // and behind it
		strings.Repeat("a", 10) + "--------" + strings.Repeat("b", 27-8) + strings.Repeat("c", 6),
	}
	ids := []string{
		"x", "-", "--", "...", "[]", `\`, "/", "*", " ", "é", "日本語", "😀", "İ", "\u212a", "ß", "a\xffb", "\xff",
		"-a", "a-", "A", "a b", "a  b", "a/b", "a:b",
		strings.Repeat("-", longestChannelID), strings.Repeat("é", longestChannelID/2), strings.Repeat("a-", longestChannelID/2),
		strings.Repeat("b", 100) + "-" + strings.Repeat("a", 23),
		strings.Repeat("b", 100) + "-" + strings.Repeat("a", 24),
	}
	for _, serverID := range serverIDs {
		for _, id := range ids {
			checkNames(t, Key{ServerID: serverID, ChannelID: id})
		}
	}
}

// TestDifferentPairsHaveDifferentNames looks at many pairs, most of which are alike: the same
// slug, the same end, the same text with the border elsewhere.
func TestDifferentPairsHaveDifferentNames(t *testing.T) {
	keys := map[Key]bool{}
	add := func(serverID, channelID string) { keys[Key{ServerID: serverID, ChannelID: channelID}] = true }
	for _, serverID := range []string{"a", "a-b", "discord", "discord-2", strings.Repeat("s", 44) + "1", strings.Repeat("s", 44) + "2", "x" + strings.Repeat("s", 43) + "1"} {
		for i := range 5000 {
			add(serverID, fmt.Sprintf("guild:%d", i))
			add(serverID, fmt.Sprintf("guild/%d", i))
			add(serverID, fmt.Sprintf("GUILD.%d", i))
			add(serverID, fmt.Sprintf("%d%s", i, strings.Repeat("-the-same-long-end", 3)))
			add(serverID, strings.Repeat("é", i%1000+1))
		}
	}
	for _, border := range [][2]string{{"a", "b-c"}, {"a-b", "c"}, {"ab", "-c"}, {"a", "bc"}, {"ab", "c"}, {"abc", "-"}} {
		add(border[0], border[1])
	}
	records, channels := map[string]Key{}, map[string]Key{}
	for key := range keys {
		if other, ok := records[key.RecordName()]; ok {
			t.Errorf("%q and %q have the record %s", key, other, key.RecordName())
		}
		if other, ok := channels[key.DiscoveredName()]; ok {
			t.Errorf("%q and %q have the Channel %s", key, other, key.DiscoveredName())
		}
		records[key.RecordName()], channels[key.DiscoveredName()] = key, key
	}
	if len(keys) < 100_000 {
		t.Errorf("only %d pairs", len(keys))
	}
}
