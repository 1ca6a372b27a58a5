// Package issuer makes the issuer of service account tokens from the flags, and serves the
// documents with which others verify the tokens. It serves section "Authentication" of the
// specification.
package issuer

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/tokenkey"
)

// Register declares the flags of issued service account tokens. Authn declares those that it
// needs to verify the tokens.
func Register(fs *pflag.FlagSet) {
	fs.String("service-account-signing-key-file", "", "PEM file with the private key that signs service account tokens (default: the first one in --service-account-key-file)")
	fs.StringArray("service-account-key-file", nil, "PEM file of keys (public or private) of service account tokens; may be given more than once; default: the server's TLS key")
	fs.StringArray("service-account-issuer", nil, "issuer of bound service account tokens; if empty, a default of the vocabulary; if given more than once, the first one issues tokens and the tokens of all are accepted")
	fs.String("service-account-jwks-uri", "", "https URL of the keys that service account tokens are verified with, for the issuer's metadata; if empty, that of the front door by the name that the client uses")
	registerLifetimes(fs)
	fs.StringSlice("api-audiences", nil, "audiences that this API answers to; the service account issuers when empty")
}

// New returns the token signer, or nil if the flags name public keys only.
func New(n *run.Node) (*Issuer, error) {
	accepted, _ := n.Flags.GetStringArray("service-account-key-file")
	files := accepted
	if file, _ := n.Flags.GetString("service-account-signing-key-file"); file != "" {
		files = []string{file}
	}
	if file, _ := n.Flags.GetString("tls-private-key-file"); len(files) == 0 && file != "" {
		files = []string{file}
	}
	given, _ := n.Flags.GetStringArray("service-account-issuer")
	names, err := tokenkey.Issuers(given, n.Vocabulary.TokenIssuer)
	if err != nil {
		return nil, run.Usagef("--service-account-issuer: %v", err)
	}
	i := &Issuer{Name: names[0], Claim: n.Vocabulary.Domain}
	i.KeysURL, _ = n.Flags.GetString("service-account-jwks-uri")
	if u, err := url.Parse(i.KeysURL); i.KeysURL != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		return nil, run.Usagef("--service-account-jwks-uri: %q is not an https URL", i.KeysURL)
	}
	if i.Lifetimes, err = readLifetimes(n.Flags, n.Log); err != nil {
		return nil, err
	}
	if i.Audiences, _ = n.Flags.GetStringSlice("api-audiences"); len(i.Audiences) == 0 {
		i.Audiences = names
	}
	switch err := i.Sign(files...); {
	case errors.Is(err, tokenkey.ErrNone):
		return nil, nil
	case err != nil:
		return nil, run.Usagef("--service-account-signing-key-file, --service-account-key-file: %v", err)
	}
	for _, file := range accepted {
		if err := i.Publish(file); err != nil {
			return nil, run.Usagef("--service-account-key-file: %v", err)
		}
	}
	return i, nil
}

// Documents of OpenID Connect Discovery 1.0, with which others verify service account
// tokens: the issuer's metadata and its keys.
const (
	pathIssuer = "/.well-known/openid-configuration"
	pathKeys   = "/openid/v1/jwks"
)

// Documents returns them by their path. An issuer that is not a URL has none, since nobody
// could fetch them.
func Documents(i *Issuer) map[string]func(http.ResponseWriter, *http.Request) error {
	if i == nil || !strings.HasPrefix(i.Name, "https://") {
		return nil
	}
	return map[string]func(http.ResponseWriter, *http.Request) error{
		pathIssuer: func(w http.ResponseWriter, r *http.Request) error {
			return writeJSON(w, "application/json", map[string]any{"issuer": i.Name, "jwks_uri": cmp.Or(i.KeysURL, "https://"+r.Host+pathKeys),
				"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
				"id_token_signing_alg_values_supported": i.algorithms()})
		},
		pathKeys: func(w http.ResponseWriter, _ *http.Request) error {
			return writeJSON(w, "application/jwk-set+json", i.Keys())
		},
	}
}

func writeJSON(w http.ResponseWriter, mediaType string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	_, err = w.Write(content)
	return err
}
