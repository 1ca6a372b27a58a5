package issuer

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/vocabulary"
)

// made makes the issuer of the flags. The log of warnings is appended to said.
func made(t *testing.T, said *strings.Builder, args ...string) (*Issuer, error) {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), "key")
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Register(fs)
	if err := fs.Parse(append(args, "--service-account-signing-key-file="+files.Key)); err != nil {
		t.Fatal(err)
	}
	return New(&run.Node{Flags: fs, Vocabulary: vocabulary.K8s(), Log: slog.New(slog.NewTextHandler(said, nil))})
}

func TestFlags(t *testing.T) {
	var said strings.Builder
	i, err := made(t, &said)
	if err != nil {
		t.Fatal(err)
	}
	if i.Name != vocabulary.K8s().TokenIssuer || i.Lifetimes != (Lifetimes{Extend: true}) || said.Len() > 0 {
		t.Errorf("by default: %+v, %s", i, said.String())
	}
	i, err = made(t, &said, "--service-account-issuer=https://new", "--service-account-issuer=https://old",
		"--service-account-max-token-expiration=2h", "--service-account-extend-token-expiration=false", "--service-account-jwks-uri=https://keys/jwks")
	if err != nil {
		t.Fatal(err)
	}
	if i.Name != "https://new" || i.KeysURL != "https://keys/jwks" || !slices.Equal(i.Audiences, []string{"https://new", "https://old"}) || i.Lifetimes != (Lifetimes{Max: 2 * time.Hour}) || said.Len() > 0 {
		t.Errorf("got %+v, %s", i, said.String())
	}
	for flag, want := range map[string]string{"1h": "no token is extended", "2h": "longer than the maximum"} {
		said.Reset()
		if _, err := made(t, &said, "--service-account-max-token-expiration="+flag); err != nil || !strings.Contains(said.String(), want) {
			t.Errorf("%s: %v, %q", flag, err, said.String())
		}
	}
	for _, flags := range [][]string{
		{"--service-account-max-token-expiration=59m59s"}, {"--service-account-max-token-expiration=-1s"}, {"--service-account-max-token-expiration=1193047h"},
		{"--service-account-issuer=a", "--service-account-issuer=a"}, {"--service-account-jwks-uri=http://keys"}, {"--service-account-jwks-uri=keys"},
	} {
		name, _, _ := strings.Cut(flags[0], "=")
		if _, err := made(t, &said, flags...); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", flags, err)
		}
	}
}
