package issuer

import (
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/portico-platform/portico/services/tokenkey"
)

// Issuer signs tokens of service accounts that are bound to an audience and a time.
type Issuer struct {
	// Name is the issuer in the tokens.
	Name string
	// KeysURL is where others get the keys; if empty, at the front door.
	KeysURL string
	// Audiences are the default audiences of requested tokens.
	Audiences []string
	// Claim is the name of the claim with the account and bound objects of a token.
	Claim string
	// Lifetimes bounds and extends how long the tokens are valid.
	Lifetimes Lifetimes
	signer    jose.Signer
	// public are the keys that the tokens are verified with, first that of the signer.
	public []jose.JSONWebKey
}

// Sign lets an issuer sign with the first private key in the files; tokenkey.ErrNone
// when they hold none.
func (i *Issuer) Sign(files ...string) error {
	key, err := tokenkey.Read(files...)
	if err != nil {
		return err
	}
	i.public = []jose.JSONWebKey{{Key: key.Signer.Public(), KeyID: key.ID, Algorithm: key.Algorithm, Use: "sig"}}
	i.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm),
		Key: jose.JSONWebKey{Key: key.Signer, KeyID: key.ID}}, nil)
	return err
}

// Publish adds the keys in a file to Keys: authn accepts the tokens of all of them, among them
// those of a key that was replaced, and others must be able to verify what they get. Keys that
// no tokens are signed with are left out.
func (i *Issuer) Publish(file string) error {
	keys, err := tokenkey.ReadPublic(file)
	if err != nil {
		return err
	}
	for _, key := range keys {
		algorithm, id, err := tokenkey.Describe(key)
		if err != nil || slices.ContainsFunc(i.public, func(k jose.JSONWebKey) bool { return k.KeyID == id }) {
			continue
		}
		i.public = append(i.public, jose.JSONWebKey{Key: key, KeyID: id, Algorithm: algorithm, Use: "sig"})
	}
	return nil
}

// Keys returns what the tokens can be verified with.
func (i *Issuer) Keys() jose.JSONWebKeySet { return jose.JSONWebKeySet{Keys: i.public} }

// algorithms returns those of the keys, in order.
func (i *Issuer) algorithms() []string {
	var names []string
	for _, key := range i.public {
		names = append(names, key.Algorithm)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Subject is the account of a token, and the objects that it is bound to.
type Subject struct {
	Namespace      string `json:"namespace"`
	ServiceAccount Named  `json:"serviceaccount"`
	Pod            *Named `json:"pod,omitempty"`
	Secret         *Named `json:"secret,omitempty"`
	// Node is the node that the pod is on, since release 1.30.
	Node *Named `json:"node,omitempty"`
	// WarnAfter is when the client should have replaced the token; nil if it is not extended.
	WarnAfter *jwt.NumericDate `json:"warnafter,omitempty"`
}

// Named is an object that a token names.
type Named struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// Issue signs a token. The standard claims need neither issuer nor times.
func (i *Issuer) Issue(standard jwt.Claims, s Subject, from, to time.Time) (string, error) {
	standard.Issuer = i.Name
	standard.IssuedAt, standard.NotBefore = jwt.NewNumericDate(from), jwt.NewNumericDate(from)
	standard.Expiry = jwt.NewNumericDate(to)
	// A single audience is a list too: clients of the original read nothing else.
	audience := []string(standard.Audience)
	standard.Audience = nil
	return jwt.Signed(i.signer).Claims(standard).Claims(map[string]any{"aud": audience, i.Claim: s}).Serialize()
}
