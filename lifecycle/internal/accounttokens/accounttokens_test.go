package accounttokens_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/lifecycle/internal/accounttokens"
	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tokenkey"
	"github.com/portico-platform/portico/services/vocabulary"
)

var (
	accounts = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, Kind: "ServiceAccount", Namespaced: true}
	secrets  = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret", Namespaced: true}
)

// place is an API with a running controller and one namespace of it.
type place struct {
	*testing.T
	accounts, secrets apitest.Objects
	key               *tokenkey.Key
}

func start(t *testing.T) place { return startAt(t, release.V121) }

func startAt(t *testing.T, emulated release.Release) place {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	a := apitest.Start(t, accounts, secrets)
	p := place{T: t, accounts: a.Objects(t, accounts.GroupVersionResource, "here"), secrets: a.Objects(t, secrets.GroupVersionResource, "here")}
	if p.key, err = tokenkey.Read(file); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	c, err := accounttokens.New(accounttokens.Config{Client: client, Vocabulary: vocabulary.Platform(), Release: emulated, Key: p.key,
		RootCertificate: []byte("a certificate"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var loops sync.WaitGroup
	loops.Go(func() { _ = c.Run(t.Context()) })
	t.Cleanup(loops.Wait)
	return p
}

// token creates a token secret for an account.
func (p place) token(name, account string) {
	p.secrets.Create(map[string]any{"name": name, "annotations": map[string]any{"platform.io/service-account.name": account}},
		map[string]any{"type": "platform.io/service-account-token"})
}

// data returns the decoded data of a secret; empty if it is not filled.
func (p place) data(name string) map[string]string {
	secret := p.secrets.Get(name)
	if secret == nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	for key, encoded := range data {
		decoded, _ := base64.StdEncoding.DecodeString(encoded)
		data[key] = string(decoded)
	}
	return data
}

// references returns the names that an account lists.
func (p place) references(account string) (names []string) {
	found, _, _ := unstructured.NestedSlice(p.accounts.Get(account).Object, "secrets")
	for _, reference := range found {
		name, _ := reference.(map[string]any)["name"].(string)
		names = append(names, name)
	}
	return names
}

// listed returns the name of the one generated secret that an account lists, except the one that is
// given; empty while there is none.
func (p place) listed(account string, except ...string) (name string) {
	for _, each := range p.references(account) {
		if strings.HasPrefix(each, account+"-token-") && !slices.Contains(except, each) {
			if name != "" {
				p.Fatalf("both %s and %s are listed", name, each)
			}
			name = each
		}
	}
	return name
}

func TestSecretsAreFilled(t *testing.T) {
	p := start(t)
	uid := p.accounts.Create(map[string]any{"name": "robot"}).GetUID()
	p.token("mine", "robot")
	apitest.Eventually(t, "the secret is filled", func() bool { return p.data("mine")["token"] != "" })
	data := p.data("mine")
	if data["namespace"] != "here" || data["ca.crt"] != "a certificate" {
		t.Errorf("it holds %q", data)
	}
	if got := p.secrets.Get("mine").GetAnnotations()["platform.io/service-account.uid"]; got != string(uid) {
		t.Errorf("the uid is %q", got)
	}
	token, err := jwt.ParseSigned(data["token"], []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := token.Claims(p.key.Public(), &claims); err != nil {
		t.Fatal(err)
	}
	for claim, want := range map[string]string{
		"iss": "platform/serviceaccount", "sub": "system:serviceaccount:here:robot", "platform.io/serviceaccount/namespace": "here",
		"platform.io/serviceaccount/secret.name": "mine", "platform.io/serviceaccount/service-account.name": "robot",
		"platform.io/serviceaccount/service-account.uid": string(uid),
	} {
		if claims[claim] != want {
			t.Errorf("%s is %v, want %s", claim, claims[claim], want)
		}
	}
	p.secrets.Change("mine", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString([]byte("old")), "data", "ca.crt")
	})
	apitest.Eventually(t, "the certificate is right again", func() bool { return p.data("mine")["ca.crt"] == "a certificate" })
	if p.data("mine")["token"] != data["token"] {
		t.Error("the token is another one")
	}
}

func TestAccountsGetSecrets(t *testing.T) {
	p := start(t)
	// Names that an account lists before their secrets exist stay, also if they look like generated ones.
	const early = "default-token-early"
	p.accounts.Create(map[string]any{"name": "default"}, map[string]any{"secrets": []any{map[string]any{"name": "later"}, map[string]any{"name": early}}})
	apitest.Eventually(t, "a secret is listed", func() bool { return p.listed("default", early) != "" })
	first := p.listed("default", early)
	apitest.Eventually(t, "and filled", func() bool { return p.data(first)["token"] != "" })
	p.secrets.Delete(first, metav1.DeletePropagationBackground)
	apitest.Eventually(t, "another one is created", func() bool { return p.listed("default", early, first) != "" })
	next := p.listed("default", early, first)
	apitest.Eventually(t, "and replaces the first one", func() bool { return slices.Equal(p.references("default"), []string{"later", early, next}) })
	p.token(early, "default")
	apitest.Eventually(t, "the secret is filled", func() bool { return p.data(early)["token"] != "" })
	if left := p.references("default"); !slices.Equal(left, []string{"later", early, next}) {
		t.Errorf("listed: %v", left)
	}
}

// TestAccountsGetNoSecrets: at 1.36 only the Secrets that somebody creates are filled, and go
// with their account.
func TestAccountsGetNoSecrets(t *testing.T) {
	p := startAt(t, release.V136)
	p.accounts.Create(map[string]any{"name": "default"})
	p.accounts.Create(map[string]any{"name": "robot"})
	p.token("mine", "robot")
	apitest.Eventually(t, "the secret is filled", func() bool { return p.data("mine")["token"] != "" })
	p.accounts.Delete("robot", metav1.DeletePropagationBackground)
	p.secrets.AwaitGone("mine") // the change of an account after that of default has been processed
	if made := p.listed("default"); made != "" {
		t.Errorf("%s was made", made)
	}
}

// TestAccountsListNoSecretThatIsGone: a token Secret that is deleted is removed from the list of
// its account, which keeps the other entries.
func TestAccountsListNoSecretThatIsGone(t *testing.T) {
	for emulated, names := range map[release.Release][]string{release.V121: {"mine"}, release.V136: {"mine", "robot-token-abcde"}} {
		p := startAt(t, emulated)
		p.accounts.Create(map[string]any{"name": "robot"})
		listed := []any{map[string]any{"name": "later"}}
		for _, name := range names {
			p.token(name, "robot")
			apitest.Eventually(t, "the secret is filled", func() bool { return p.data(name)["token"] != "" })
			listed = append(listed, map[string]any{"name": name})
		}
		p.accounts.Change("robot", func(o *unstructured.Unstructured) {
			before, _, _ := unstructured.NestedSlice(o.Object, "secrets")
			_ = unstructured.SetNestedSlice(o.Object, append(before, listed...), "secrets")
		})
		for _, name := range names {
			p.secrets.Delete(name, metav1.DeletePropagationBackground)
		}
		apitest.Eventually(t, "the secrets are not listed", func() bool {
			left, _, _ := unstructured.NestedSlice(p.accounts.Get("robot").Object, "secrets")
			text := fmt.Sprint(left)
			return strings.Contains(text, "later") && !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, name) })
		})
	}
}

func TestSecretsGoWithTheirAccount(t *testing.T) {
	p := start(t)
	p.token("orphan", "nobody")
	p.secrets.AwaitGone("orphan")
	p.accounts.Create(map[string]any{"name": "robot"})
	p.token("mine", "robot")
	p.secrets.Create(map[string]any{"name": "other", "annotations": map[string]any{"platform.io/service-account.name": "robot"}}, map[string]any{"type": "Opaque"})
	apitest.Eventually(t, "the secrets are filled", func() bool { return p.data("mine")["token"] != "" && p.listed("robot") != "" })
	made := p.listed("robot")
	p.accounts.Delete("robot", metav1.DeletePropagationBackground)
	p.secrets.AwaitGone("mine", made)
	if p.secrets.Get("other") == nil {
		t.Error("a secret of another type is gone")
	}
}
