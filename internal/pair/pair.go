// Package pair names a channel. A channel's id is unique within its connector only, so everything
// that is kept about a channel is kept under the pair of both, and the names of objects that stand
// for a channel are made from the pair here.
package pair

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Key is one channel of one connector in one namespace.
type Key struct {
	Namespace string
	// ServerID is the connector's effective serverID.
	ServerID string
	// ChannelID is the channel's id as the connector writes it, at most 2,048 bytes.
	ChannelID string
}

// RecordName is the name of the channel's ChannelRecord: the serverID and 16 hex digits.
func (k Key) RecordName() string {
	return k.ServerID + "-" + k.hash()[:16]
}

// DiscoveredName is the name of a Channel that the operator makes: at most 25 characters of the
// serverID, at most 24 of the id, and 10 hex digits. The label has no part in it, since it changes.
func (k Key) DiscoveredName() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{cut(k.ServerID, 25), cut(slug(k.ChannelID), 24), k.hash()[:10]} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "-")
}

// String is the pair as people write it.
func (k Key) String() string { return k.ServerID + ":" + k.ChannelID }

func (k Key) hash() string {
	sum := sha256.Sum256([]byte(k.ServerID + "\x00" + k.ChannelID))
	return hex.EncodeToString(sum[:])
}

// slug keeps what may stand in a name: lower-case letters, digits and single dashes.
func slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

// cut shortens a slug to its last n characters: ids differ at their end, not at their beginning.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[len(s)-n:]
	}
	return strings.Trim(s, "-")
}
