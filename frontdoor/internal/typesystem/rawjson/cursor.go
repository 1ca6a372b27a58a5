package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// Cursor reads JSON from start to end in a single pass, for callers that know the
// structure. A method returns false if the expected value does not follow; the position is
// undefined then.
type Cursor struct {
	text []byte
	at   int
}

// Read returns a cursor at the start of a value.
func (v Value) Read() Cursor { return Cursor{text: v} }

// Open enters an object or array that begins with the given bracket.
func (c *Cursor) Open(bracket byte) bool {
	if c.Peek() != bracket {
		return false
	}
	c.at++
	return true
}

// More advances to the next member or item. It returns false after the closing bracket,
// which it consumes, and at the end of the text.
func (c *Cursor) More(closing byte) bool {
	switch c.Peek() {
	case 0:
		return false
	case closing:
		c.at++
		return false
	case ',':
		c.at++
		return c.Peek() != 0
	}
	return true
}

// Peek returns the first byte of the next token; 0 at the end.
func (c *Cursor) Peek() byte {
	for c.at < len(c.text) {
		if b := c.text[c.at]; b > ' ' {
			return b
		}
		c.at++
	}
	return 0
}

// Key reads the name of a member and the colon. The name is in quotes.
func (c *Cursor) Key() (Value, bool) {
	if c.Peek() != '"' {
		return nil, false
	}
	start := c.at
	c.at = skipString(c.text, start)
	key := c.text[start:c.at]
	return key, c.colon()
}

// TextKey reads the name of a member without escapes, see Text, and the colon.
func (c *Cursor) TextKey() ([]byte, bool) {
	key, ok := c.Text()
	return key, ok && c.colon()
}

func (c *Cursor) colon() bool {
	if c.Peek() != ':' {
		return false
	}
	c.at++
	return true
}

// Skip reads and returns any value, without decoding it. Where there is none, as in text that is
// not JSON, it returns an empty one and moves to the end, so that loops over items end.
func (c *Cursor) Skip() Value {
	c.Peek()
	start := c.at
	if c.at = skip(c.text, start); c.at == start {
		c.at = len(c.text)
		return nil
	}
	return c.text[start:c.at]
}

// Int reads an integer.
func (c *Cursor) Int() (int64, bool) {
	text := c.Skip()
	if len(text) > 18 { // might not fit
		n, err := strconv.ParseInt(string(text), 10, 64)
		return n, err == nil
	}
	digits := bytes.TrimPrefix(text, []byte("-"))
	n := int64(0)
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = 10*n + int64(d-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, len(digits) > 0
}

// Null reads a null if it is next. It consumes any other value that starts with n.
func (c *Cursor) Null() bool {
	if c.Peek() != 'n' {
		return false
	}
	return string(c.Skip()) == "null"
}

// Text reads a string that needs no decoding: it has no escapes and is valid UTF-8. The
// result has no quotes. If it returns false, the position is unchanged, and AppendString
// can read the string.
func (c *Cursor) Text() ([]byte, bool) {
	if c.Peek() != '"' {
		return nil, false
	}
	start := c.at + 1
	end, ascii := plain(c.text, start)
	if end >= len(c.text) || c.text[end] != '"' || !ascii && !utf8.Valid(c.text[start:end]) {
		return nil, false
	}
	c.at = end + 1
	return c.text[start:end], true
}

// AppendString reads a string and appends its decoded value.
func (c *Cursor) AppendString(dst []byte) ([]byte, bool) {
	if c.Peek() != '"' {
		return dst, false
	}
	return c.Skip().appendString(dst)
}

// appendString appends the decoded value of a string, as encoding/json decodes it.
func (v Value) appendString(dst []byte) ([]byte, bool) {
	if len(v) < 2 || v[len(v)-1] != '"' {
		return dst, false
	}
	before := len(dst)
	for rest := v[1 : len(v)-1]; ; {
		end := bytes.IndexByte(rest, '\\')
		if end < 0 {
			dst = append(dst, rest...)
			break
		}
		dst = append(dst, rest[:end]...)
		decoded := byte(0)
		if end+1 < len(rest) {
			decoded = escapes[rest[end+1]]
		}
		if decoded == 0 {
			return v.decodeString(dst[:before])
		}
		dst = append(dst, decoded)
		rest = rest[end+2:]
	}
	if !utf8.Valid(dst[before:]) {
		return v.decodeString(dst[:before])
	}
	return dst, true
}

// decodeString is the slow path of appendString.
func (v Value) decodeString(dst []byte) ([]byte, bool) {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return dst, false
	}
	return append(dst, s...), true
}

// escapes maps letters after a backslash to their meaning; 0 means that decodeString has to
// handle the escape.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// Words of eight bytes are compared at once: a byte of the result has its highest bit set
// where the byte of the word matches. Only the lowest such bit is reliable.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

func equal(word uint64, b byte) uint64 {
	word ^= ones * uint64(b)
	return (word - ones) &^ word & highs
}

// plain returns the end of the part of a string that needs no decoding (at a quote, a
// backslash, a control character or the end), and whether it is all ASCII.
func plain(b []byte, i int) (end int, ascii bool) {
	ascii = true
	for ; i+8 <= len(b); i += 8 {
		word := binary.LittleEndian.Uint64(b[i:])
		if word&highs != 0 {
			ascii = false
		}
		control := (word - ones*' ') &^ word & highs
		if stop := equal(word, '"') | equal(word, '\\') | control; stop != 0 {
			return i + bits.TrailingZeros64(stop)/8, ascii
		}
	}
	for ; i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' '; i++ {
		ascii = ascii && b[i] < utf8.RuneSelf
	}
	return i, ascii
}
