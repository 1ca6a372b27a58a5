// Package auditchain makes the lines of an audit log a chain: each line ends with the hash of the line before it, its
// number and a hash of itself and all lines before it, so that a line that was edited, removed or moved is found. With
// a key, only those who have it can compute the hashes. The chain goes on when files rotate and when the
// process starts again.
package auditchain

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
)

// Key is the key of a chain; empty for a chain without one.
type Key []byte

// MinKey is the minimum length of a key in bytes.
const MinKey = 32

// ParseKey returns the key that is the content of a file.
func ParseKey(content []byte) (Key, error) {
	if key := bytes.TrimSpace(content); len(key) >= MinKey {
		return key, nil
	}
	return nil, fmt.Errorf("the key of an audit chain must have at least %d bytes", MinKey)
}

// Link is the end of a chain: the number of its last line, and the hash.
type Link struct {
	N    uint64
	Hash [sha256.Size]byte
}

// String returns the form in which a line has its link: 12:<hex>.
func (l Link) String() string {
	return strconv.FormatUint(l.N, 10) + ":" + hex.EncodeToString(l.Hash[:])
}

// ParseLink is the inverse of String.
func ParseLink(text string) (l Link, err error) {
	number, sum, ok := bytes.Cut([]byte(text), []byte(":"))
	if !ok || hex.DecodedLen(len(sum)) != len(l.Hash) {
		return l, fmt.Errorf("%q is not a link of an audit chain", text)
	}
	if l.N, err = strconv.ParseUint(string(number), 10, 64); err != nil {
		return l, err
	}
	_, err = hex.Decode(l.Hash[:], sum)
	return l, err
}

// Next returns the link of a line that follows.
func (l Link) Next(key Key, line []byte) Link {
	next := Link{N: l.N + 1}
	var h hash.Hash
	if len(key) > 0 {
		h = hmac.New(sha256.New, key)
	} else {
		h = sha256.New()
	}
	_, _ = h.Write(l.Hash[:]) // never fails
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, next.N))
	_, _ = h.Write(line)
	h.Sum(next.Hash[:0])
	return next
}

// member is the last member of a line, before its link.
const member = `,"chain":"`

// Append appends a line, which is a JSON object with members, with its link.
func Append(to, line []byte, link Link) []byte {
	to = append(to, line[:len(line)-1]...)
	to = append(to, member...)
	to = append(to, link.String()...)
	return append(to, `"}`...)
}

// Split returns a line without its link, and the link. It returns an error if the line has none.
func Split(chained []byte) (line []byte, link Link, err error) {
	i := bytes.LastIndex(chained, []byte(member))
	end, ok := bytes.CutSuffix(chained, []byte(`"}`))
	if i < 0 || !ok || len(end) < i+len(member) {
		return nil, link, fmt.Errorf("the line has no link")
	}
	if link, err = ParseLink(string(end[i+len(member):])); err != nil {
		return nil, link, err
	}
	return append(chained[:i:i], '}'), link, nil
}
