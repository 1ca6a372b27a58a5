package frontdoor

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/actions"
	"github.com/portico-platform/portico/services/run"
	"github.com/portico-platform/portico/services/tokenkey"
)

// registerTokens declares the flags about tokens that are issued to service
// accounts. All but the first are authn's too, which accepts the tokens.
func registerTokens(fs *pflag.FlagSet) {
	fs.String("service-account-signing-key-file", "", "PEM file of the private key that tokens of service accounts are signed with; the first one in --service-account-key-file when empty")
	fs.StringArray("service-account-key-file", nil, "PEM file of keys that service account tokens are signed with (public or private); may be given more than once; the server's TLS key when absent")
	fs.String("service-account-issuer", "", "issuer of bound service account tokens; a name of this API when empty")
	fs.StringSlice("api-audiences", nil, "audiences that this API answers to; the service account issuer when empty")
}

// newIssuer returns what signs tokens; nil when the flags name public keys only.
func newIssuer(n *run.Node) (*actions.Issuer, error) {
	files, _ := n.Flags.GetStringArray("service-account-key-file")
	if file, _ := n.Flags.GetString("service-account-signing-key-file"); file != "" {
		files = []string{file}
	}
	if file, _ := n.Flags.GetString("tls-private-key-file"); len(files) == 0 && file != "" {
		files = []string{file}
	}
	i := &actions.Issuer{Name: n.Vocabulary.TokenIssuer, Claim: n.Vocabulary.Domain}
	if name, _ := n.Flags.GetString("service-account-issuer"); name != "" {
		i.Name = name
	}
	if i.Audiences, _ = n.Flags.GetStringSlice("api-audiences"); len(i.Audiences) == 0 {
		i.Audiences = []string{i.Name}
	}
	switch err := i.Sign(files...); {
	case errors.Is(err, tokenkey.ErrNone):
		return nil, nil
	case err != nil:
		return nil, run.Usagef("--service-account-signing-key-file, --service-account-key-file: %v", err)
	}
	return i, nil
}

// newActions makes what serves the paths that ask for a deed.
func (d *door) newActions(n *run.Node, b behind) (*actions.Handlers, error) {
	issuer, err := newIssuer(n)
	return &actions.Handlers{Store: b.store, Writes: d.writes, Admission: b.admission, Codec: d.writes.Codec,
		Vocabulary: n.Vocabulary, Tokens: issuer, Now: time.Now}, err
}
