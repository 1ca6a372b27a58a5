package authn_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/authn"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/kit/run"
)

func TestContract(t *testing.T) {
	ca := newAuthority(t)
	open := func(t *testing.T) services.Authn {
		return started(t, "--token-auth-file="+tokens(t, `secret,jane,7,"ops,dev"`), "--client-ca-file="+ca.file)
	}
	kittest.LocalAndRemote(t, contract.Authn, open, func(t *testing.T, open func(*testing.T) services.Authn) {
		contracttest.Authn(t, open, contracttest.AuthnExample{
			Valid:   services.Credentials{BearerToken: "secret"},
			User:    services.UserInfo{Name: "jane", UID: "7", Groups: []string{"ops", "dev", services.GroupAuthenticated}},
			Invalid: services.Credentials{BearerToken: "secrets"},
		})
	})
}

// TestFlags checks the usage errors of invalid flags.
func TestFlags(t *testing.T) {
	for _, c := range []struct{ name, arg, want string }{
		{"two columns", "--token-auth-file=" + tokens(t, "a,b,c", "x,y"), "line 2"},
		{"groups in cells of their own", "--token-auth-file=" + tokens(t, "a,b,c,d,e"), "one cell"},
		{"an open quote", "--token-auth-file=" + tokens(t, `a,b,c,"d`), "line 1"},
		{"a token twice", "--token-auth-file=" + tokens(t, "a,b,c", "", "a,x,y"), "line 3"},
		{"no token file", "--token-auth-file=" + filepath.Join(t.TempDir(), "none"), "no such file"},
		{"no certificate", "--client-ca-file=" + tokens(t, "a,b,c"), "no PEM certificate"},
		{"no key", "--service-account-key-file=" + tokens(t, "a,b,c"), "no PEM key"},
		{"an insecure issuer", "--oidc-issuer-url=http://localhost --oidc-client-id=x", "not an https URL"},
		{"an issuer alone", "--oidc-issuer-url=https://localhost", "--oidc-client-id"},
		{"issuers twice", "--oidc-client-id=x --authentication-config=" + write(t, configHead), "cannot be used together with --oidc-client-id"},
		{"anonymous twice", "--anonymous-auth=true --authentication-config=" + write(t, configHead+"anonymous: {enabled: true}\n"), "--anonymous-auth flag cannot be set when anonymous field is configured"},
		{"no configuration", "--authentication-config=/none", "/none"},
		{"an issuer of service accounts", "--authentication-config=" + write(t, configHead+"jwt: [{issuer: {url: 'https://platform.default.svc', audiences: [x]}, claimMappings: {username: {claim: sub, prefix: ''}}}]\n"), "jwt[0].issuer.url"},
		{"an issuer with a query", "--oidc-client-id=x --oidc-issuer-url=https://localhost?a=b", "issuer.url: Invalid value"},
		{"a proxy without authority", "--requestheader-username-headers=X-User", "--requestheader-client-ca-file"},
		{"an unknown version", "--authentication-token-webhook-config-file=x --authentication-token-webhook-version=v2", "v2"},
		{"a webhook without configuration", "--authentication-token-webhook-config-file=/none", "/none"},
	} {
		_, err := start(t, strings.Fields(c.arg)...)
		if !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a usage error with %q", c.name, err, c.want)
		}
	}
}

func TestAnonymous(t *testing.T) {
	got, err := started(t).Authenticate(t.Context(), services.Credentials{})
	if err != nil || got.User.Name != services.UserAnonymous || len(got.User.Groups) != 1 || got.User.Groups[0] != services.GroupUnauthenticated {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = started(t, "--anonymous-auth=false").Authenticate(t.Context(), services.Credentials{})
	if !services.IsReason(err, services.ReasonUnauthorized) {
		t.Errorf("without anonymous access: %v", err)
	}
	_, err = started(t, "--authorization-mode=RBAC,AlwaysAllow").Authenticate(t.Context(), services.Credentials{})
	if !services.IsReason(err, services.ReasonUnauthorized) {
		t.Errorf("where everything is allowed: %v", err)
	}
	_, err = started(t).Authenticate(t.Context(), services.Credentials{BearerToken: "unknown"})
	if !services.IsReason(err, services.ReasonUnauthorized) {
		t.Errorf("an unknown token: %v", err)
	}
}

// TestLongTokens: a token that is too long is refused before it is decoded, and other credentials beside it count.
func TestLongTokens(t *testing.T) {
	long := strings.Repeat("a", 60<<10)
	a := started(t, "--token-auth-file="+tokens(t, long+",jane,1", long+long+",joe,2"))
	if got, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: long}); err != nil || got.User.Name != "jane" {
		t.Errorf("a token of %d bytes: %+v, %v", len(long), got, err)
	}
	if _, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: long + long}); !services.IsReason(err, services.ReasonUnauthorized) {
		t.Errorf("a token of %d bytes: %v", 2*len(long), err)
	}
}

func TestSeveralTokenFiles(t *testing.T) {
	a := started(t, "--token-auth-file="+tokens(t, "one,jane,1"), "--token-auth-file="+tokens(t, "two,joe,2,system:masters"))
	for token, name := range map[string]string{"one": "jane", "two": "joe"} {
		got, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: token})
		if err != nil || got.User.Name != name {
			t.Errorf("%s: %+v, %v", token, got, err)
		}
	}
}

// TestTokenFilesAreReloaded replaces a file while it is in use, also by one with an error, which
// changes nothing.
func TestTokenFilesAreReloaded(t *testing.T) {
	file := tokens(t, "one,jane,1", "two,joe,2")
	a := started(t, "--token-auth-file="+file)
	ask := func(token string) (services.Authentication, error) {
		return a.Authenticate(t.Context(), services.Credentials{BearerToken: token})
	}
	before, err := ask("one")
	if err != nil || before.Credential.Source == "" || before.Credential.Method != "token-file" || before.CacheFor > time.Second {
		t.Fatalf("%+v, %v", before, err)
	}
	replace := func(lines ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace("three,jim,3", "not a token")
	replace("two,joe,2,ops")
	for deadline := time.Now().Add(10 * time.Second); ; {
		_, err := ask("one")
		two, errOfTwo := ask("two")
		if errOfTwo != nil {
			t.Fatal(errOfTwo)
		}
		if services.IsReason(err, services.ReasonUnauthorized) && len(two.User.Groups) == 2 && two.Credential.Source != before.Credential.Source {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("one: %v, two: %+v", err, two)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	a := started(t, "--client-ca-file="+ca.file)
	got, err := a.Authenticate(t.Context(), services.Credentials{Certificates: ca.client(t, "jane", "ops")})
	if err != nil || got.User.Name != "jane" || strings.Join(got.User.Groups, " ") != "ops system:authenticated" {
		t.Errorf("got %+v, %v", got, err)
	}
	if c := got.Credential; c.Serial == "" || c.KeyID == "" || !c.Expires.After(time.Now()) || c.Method != "client-certificate" {
		t.Errorf("the trace is %+v", c)
	}
	_, err = a.Authenticate(t.Context(), services.Credentials{Certificates: other.client(t, "jane")})
	if !services.IsReason(err, services.ReasonUnauthorized) {
		t.Errorf("of another authority: %v", err)
	}
}

func TestProxy(t *testing.T) {
	ca := newAuthority(t)
	a := started(t, "--requestheader-client-ca-file="+ca.file, "--requestheader-allowed-names=proxy",
		"--requestheader-username-headers=X-First,X-User", "--requestheader-group-headers=X-Group",
		"--requestheader-extra-headers-prefix=X-Extra-")
	headers := map[string][]string{"X-User": {"pia"}, "X-Group": {"g1", "g2"}, "X-Extra-Example.com%2frole": {"boss"}}
	got, err := a.Authenticate(t.Context(), services.Credentials{Certificates: ca.client(t, "proxy"), Headers: headers})
	if err != nil || got.User.Name != "pia" || strings.Join(got.User.Groups, " ") != "g1 g2 system:authenticated" ||
		strings.Join(got.User.Extra["example.com/role"], " ") != "boss" {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = a.Authenticate(t.Context(), services.Credentials{Certificates: ca.client(t, "another"), Headers: headers})
	if err != nil || got.User.Name != services.UserAnonymous {
		t.Errorf("another proxy: %+v, %v", got, err)
	}
}

// started starts the service with these flags until the end of the test and returns its
// contract.
func started(t testing.TB, args ...string) services.Authn {
	t.Helper()
	a, err := start(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func start(t testing.TB, args ...string) (services.Authn, error) {
	t.Helper()
	return startOn(t, fake.New(t), args...)
}

func startOn(t testing.TB, cluster *fake.Cluster, args ...string) (services.Authn, error) {
	t.Helper()
	var offered services.Authn
	user := run.Service{Name: "frontdoor", Needs: []run.Dependency{contract.Authn}, Start: func(ctx context.Context, n *run.Node) (err error) {
		offered, err = contract.Authn.Use(ctx, n)
		return err
	}}
	app := run.App{Name: "test", Services: []run.Service{cluster.Service(), authn.Service(), user}}
	running, err := run.Start(t.Context(), app, append(args, "--log-level=error"))
	if err == nil {
		t.Cleanup(running.Stop)
	}
	return offered, err
}

func tokens(t *testing.T, lines ...string) string {
	t.Helper()
	return write(t, strings.Join(lines, "\n"))
}

func write(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
