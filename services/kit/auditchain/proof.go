package auditchain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// A line ends with the hash of the line before it, so that with the key it verifies alone: also the first one that
// is left when older files have been deleted. The hash of a line covers this member, whose name says whether the
// line before has such a member too: it then cannot be exchanged for one of an earlier release, without it.
const (
	afterMember   = `,"after":"`
	resumedMember = `,"resumed":"` // after a line of an earlier release, or one that is not known
)

// prove appends the member to a line. proven says whether the line before has one.
func (l Link) prove(line []byte, proven bool) []byte {
	name := resumedMember
	if proven {
		name = afterMember
	}
	to := append(make([]byte, 0, len(line)+len(name)+hex.EncodedLen(len(l.Hash))+2), line[:len(line)-1]...)
	to = append(to, name...)
	to = hex.AppendEncode(to, l.Hash[:])
	return append(to, `"}`...)
}

// proof returns the hash of the line before that a line has; false if it has none, as a line of an earlier release.
// proven reports whether the line before has a member too.
func proof(line []byte) (before [sha256.Size]byte, proven, ok bool) {
	end, whole := bytes.CutSuffix(line, []byte(`"}`))
	if !whole || len(end) < hex.EncodedLen(len(before)) {
		return before, false, false
	}
	rest, sum := end[:len(end)-hex.EncodedLen(len(before))], end[len(end)-hex.EncodedLen(len(before)):]
	if _, err := hex.Decode(before[:], sum); err != nil {
		return before, false, false
	}
	proven = bytes.HasSuffix(rest, []byte(afterMember))
	return before, proven, proven || bytes.HasSuffix(rest, []byte(resumedMember))
}
