package reads

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/monotonic"
)

// position is the content of a continue token: the list, its revision, and the key after
// which the next chunk starts (section "Chunked lists").
type position struct {
	Revision int64  `json:"r"` // 0 for that of the next chunk, after the first one's has been compacted
	After    string `json:"a"`
	// List is a digest of everything that must be the same for all chunks.
	List []byte `json:"l"`
	origin
	// Permitted is the digest of the namespaces of a list with permitted=true.
	Permitted []byte `json:"p,omitempty"`
}

// origin is when and where a list began. Its age is known to the front door where it began, by a clock that
// does not jump. Elsewhere the list can be continued until its revision is compacted: clocks of others tell nothing.
type origin struct {
	Issued int64  `json:"t"`           // in Unix seconds, for front doors of earlier releases
	By     string `json:"b,omitempty"` // of Tokens
	At     int64  `json:"m,omitempty"` // there, as monotonic.Now
}

// Tokens seals positions, so that forged or truncated tokens are rejected. All replicas
// share the key.
type Tokens struct {
	seal cipher.AEAD
	by   string // of this front door, until it ends
}

// NewTokens returns Tokens with a key.
func NewTokens(key []byte) (*Tokens, error) {
	digest := sha256.Sum256(key)
	block, err := aes.NewCipher(digest[:])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Tokens{seal: aead, by: rand.Text()[:8]}, nil
}

// listDigest identifies a list by its collection and selectors, and by its user if what it
// returns depends on that.
func listDigest(r *request.Request, o request.ReadOptions) []byte {
	h := sha256.New()
	parts := []string{r.Type.Key.String(), r.Namespace, o.LabelSelector, o.FieldSelector}
	if r.Permitted != nil {
		parts = append(parts, "permitted", r.User.Name, r.User.UID)
	}
	for _, s := range parts {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return h.Sum(nil)[:8]
}

// encode returns the token of a position.
func (t *Tokens) encode(p position) (string, error) {
	plain, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(t.seal.Seal(nil, nil, plain, nil)), nil
}

// decode opens a token. It returns BadRequest (400) if the token was not sealed with this
// key or belongs to another list.
func (t *Tokens) decode(token string, list []byte) (position, error) {
	var p position
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return p, services.BadRequest("continue key is not valid: it was not given by this service")
	}
	plain, err := t.seal.Open(nil, nil, sealed, nil)
	if err != nil || json.Unmarshal(plain, &p) != nil {
		return p, services.BadRequest("continue key is not valid: it was not given by this service")
	}
	if string(p.List) != string(list) {
		return p, services.BadRequest("continue key is not valid: it belongs to another list")
	}
	return p, nil
}

// origin is that of a list which begins now.
func (t *Tokens) origin() origin { return origin{time.Now().Unix(), t.by, monotonic.Now()} }

// expired reports whether the list is known to have begun longer ago than the token lifetime.
func (t *Tokens) expired(o origin, lifetime time.Duration) bool {
	return o.By == t.by && monotonic.Since(o.At) > lifetime
}

// NewKey returns a random sealing key.
func NewKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return key
}
