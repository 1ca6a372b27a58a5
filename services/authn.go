package services

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/services/resource"
)

// Authn authenticates requests (section "Authentication"). It is modeled on
// TokenReview. Only the front door may call it.
type Authn interface {
	// Authenticate returns the user of the credentials. Unauthorized (401) if a credential
	// is invalid, or if there is none and anonymous access is off.
	Authenticate(ctx context.Context, c Credentials) (Authentication, error)
}

// Credentials is everything in a request that may identify the user.
type Credentials struct {
	// Certificates is the chain that the TLS client presented, leaf first, DER. The TLS
	// handshake proves only possession of the key; authn verifies the chain.
	Certificates [][]byte
	// BearerToken is the token of the Authorization header; empty if there is none.
	BearerToken string
	// Headers are the request's other headers, in canonical form, for the
	// authenticating proxy.
	Headers map[string][]string
	// Audiences are the audiences that the token must be for; empty means this API.
	Audiences []string
	// Path is the path of the request, empty if there is none. Anonymous access may be limited to some paths.
	Path string
	// NotOlderThan is the minimum revision of the state that authn reads from the store. 0 is any state.
	NotOlderThan int64
}

// Authentication is the result of Authenticate.
type Authentication struct {
	User UserInfo
	// Audiences are those of the requested audiences that the token is valid for, or of those of this API if
	// none is requested.
	Audiences []string
	// CacheFor is how long the caller may cache this result for the same credentials; 0
	// means not at all.
	CacheFor time.Duration
	// ProxyHeaders are the headers that identified the user. The front door removes
	// them before it forwards a request.
	ProxyHeaders []string
	// WarnAfter is when the client should have replaced its token, which is still valid, in
	// whole seconds; zero if there is no such time.
	WarnAfter time.Time
	// Credential is what the result depends on.
	Credential Credential
	// Legacy is set for a service account token in a Secret, whose use must be recorded.
	Legacy *LegacyToken
}

// Credential describes accepted credentials: their identifiers, and what ends their validity. It contains no secret.
type Credential struct {
	// Method is the name of the method that accepted them; empty for anonymous requests.
	Method string
	// Expires is when they expire, and Issued when they were issued, in whole seconds; zero if never or unknown.
	Expires, Issued time.Time
	// TokenID is the claim jti of a token. Serial is the serial number of a certificate, in
	// lower-case hexadecimal.
	TokenID, Serial string
	// KeyID is the subject key ID of a certificate in lower-case hexadecimal, or the ID of the
	// key that a token is signed with.
	KeyID string
	// Objects are the stored objects whose deletion or change invalidates them.
	Objects []BoundObject
	// Source identifies the content of the files that the result was read from. The result is valid as long as
	// authn returns the same Source for other credentials of these files.
	Source string
}

// Values of Credential.Method that a client needs no secret in the request for: a certificate of its
// connection, its own or that of an authenticating proxy.
const (
	ByCertificate = "client-certificate"
	ByProxy       = "proxy"
)

// BoundObject is a stored object that credentials are bound to.
type BoundObject struct {
	Key resource.Key
	UID string // empty for any
}

// UserInfo identifies a user: the attributes of section "Authentication".
type UserInfo struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Equal reports whether all attributes are the same, in the same order.
func (u UserInfo) Equal(v UserInfo) bool {
	return u.Name == v.Name && u.UID == v.UID && slices.Equal(u.Groups, v.Groups) && maps.EqualFunc(u.Extra, v.Extra, slices.Equal)
}

// Names that authentication assigns.
const (
	UserAnonymous           = "system:anonymous"
	GroupUnauthenticated    = "system:unauthenticated"
	GroupAuthenticated      = "system:authenticated"
	GroupMasters            = "system:masters"
	GroupServiceAccounts    = "system:serviceaccounts"
	GroupNodes              = "system:nodes"
	UserServiceAccountStart = "system:serviceaccount:"
	UserNodeStart           = "system:node:"
)

// Node reports whether the user is a kubelet, and returns the name of its node; empty if the user has none.
func (u UserInfo) Node() (name string, is bool) {
	name, is = strings.CutPrefix(u.Name, UserNodeStart)
	return name, is && slices.Contains(u.Groups, GroupNodes)
}
