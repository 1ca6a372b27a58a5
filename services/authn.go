package services

import (
	"context"
	"time"
)

// Authn finds out who makes a request (section "Authentication"). It is shaped
// after TokenReview. Only the front door may call it.
type Authn interface {
	// Authenticate returns the identity that the credentials prove. Unauthorized
	// (401) when a credential is present and not valid, or when there is none and
	// anonymous access is off.
	Authenticate(ctx context.Context, c Credentials) (Authentication, error)
}

// Credentials is everything in a request that may identify its sender.
type Credentials struct {
	// Certificates is the chain that the TLS client presented, leaf first, DER.
	// The handshake proved possession of the key and nothing else: authn verifies
	// the chain.
	Certificates [][]byte
	// BearerToken is the token of the Authorization header; empty when there is none.
	BearerToken string
	// Headers are the request's other headers, in canonical form, for the
	// authenticating proxy.
	Headers map[string][]string
	// Audiences is who the token must be meant for; empty means this API.
	Audiences []string
}

// Authentication is the answer of an Authn.
type Authentication struct {
	User UserInfo
	// Audiences is the subset of the requested audiences that the token is valid for.
	Audiences []string
	// CacheFor is how long the caller may reuse this answer for the same
	// credentials; 0 means not at all.
	CacheFor time.Duration
	// ProxyHeaders names the headers that were used to identify the user: the
	// front door drops them before it forwards a request.
	ProxyHeaders []string
}

// UserInfo is who makes a request: the attributes of section "Authentication".
type UserInfo struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Names that authentication gives.
const (
	UserAnonymous           = "system:anonymous"
	GroupUnauthenticated    = "system:unauthenticated"
	GroupAuthenticated      = "system:authenticated"
	GroupMasters            = "system:masters"
	GroupServiceAccounts    = "system:serviceaccounts"
	UserServiceAccountStart = "system:serviceaccount:"
)
