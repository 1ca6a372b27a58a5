package rights

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/rawhttp"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

func held() []attack.Trial {
	return []attack.Trial{
		{Name: "PathTricks", Finding: "D", Run: pathTricks},
		{Name: "MethodTricks", Finding: "D", Run: methodTricks},
		{Name: "PatchedIdentity", Finding: "D", Run: patchedIdentity},
		{Name: "CrossedSubresources", Finding: "D", Run: crossedSubresources},
		{Name: "ContinueTokens", Finding: "D", Run: continueTokens},
		{Name: "BootstrapTokens", Finding: "D", Run: bootstrapTokens},
	}
}

// disguises returns spellings of a path that must not bypass authorization.
func disguises(path string) []string {
	rest := strings.TrimPrefix(path, "/api/v1/")
	return []string{
		"//api/v1/" + rest, "/api//v1/" + rest, "/api/v1//" + rest, path + "/", path + "//",
		"/./api/v1/" + rest, "/api/./v1/" + rest, "/api/../api/v1/" + rest, "/livez/../api/v1/" + rest, "/healthz/..;/api/v1/" + rest,
		"/%2e/api/v1/" + rest, "/livez/%2e%2e/api/v1/" + rest, "/livez%2f..%2fapi/v1/" + rest, "/api%2fv1/" + rest, "/api/v1%2f" + rest,
		"/%61pi/v1/" + rest, "/api/%76%31/" + rest, "/API/v1/" + rest, "/Api/V1/" + rest, path + "%00", path + "%20", path + "%0a",
		path + ";a=b", "/api/v1;a/" + rest, path + "?", path + "#", path + "%23", path + "%3f", path + "/status", path + "/.",
		path + "/..%2f" + "hidden", "\\api\\v1\\" + strings.ReplaceAll(rest, "/", "\\"), "/api/v1/watch/" + rest, "/api/v1/proxy/" + rest,
		"https://localhost" + path, "http://127.0.0.1" + path, "/readyz/" + path, "/openapi/v2/.." + path, "*",
	}
}

// pathTricks requests a Secret with every spelling, anonymously and as a user without
// permissions.
func pathTricks(ctx context.Context, t *attack.Target) error {
	word, path, err := attack.Secret(ctx, t)
	if err != nil {
		return err
	}
	mallory, err := t.User(ctx, "")
	if err != nil {
		return err
	}
	for _, token := range []string{"", mallory.Token} {
		for _, disguise := range disguises(path) {
			head := rawhttp.Head(http.MethodGet, disguise, "Connection: close")
			if token != "" {
				head += "\r\nAuthorization: Bearer " + token
			}
			if err := conceals(ctx, t, head+"\r\n\r\n", word); err != nil {
				return fmt.Errorf("%s: %w", disguise, err)
			}
		}
	}
	return nil
}

// conceals sends bytes and returns an error if a response contains the word.
func conceals(ctx context.Context, t *attack.Target, sent, word string) error {
	answers, err := attack.Server(t).Exchange(ctx, sent, 5*time.Second)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if strings.Contains(a.Body, word) {
			return fmt.Errorf("a response with code %d contains the secret", a.Code)
		}
		if a.Code >= 500 && a.Code != http.StatusNotImplemented && a.Code != http.StatusHTTPVersionNotSupported {
			return fmt.Errorf("got %d: %.200s", a.Code, a.Body)
		}
	}
	return nil
}

// methodTricks uses unusual methods, and headers by which some servers override them.
func methodTricks(ctx context.Context, t *attack.Target) error {
	word, path, err := attack.Secret(ctx, t)
	if err != nil {
		return err
	}
	reader, err := t.User(ctx, attack.Rule("get", "", "secrets"))
	if err != nil {
		return err
	}
	for _, method := range []string{"get", "GET ", "TRACE", "CONNECT", "OPTIONS", "PROPFIND", "HEAD", "QUERY", "SEARCH"} {
		if err := conceals(ctx, t, rawhttp.Head(method, path, "Connection: close")+"\r\n\r\n", word); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
	}
	for _, header := range []string{"X-Http-Method-Override", "X-Method-Override", "X-Http-Method", "_method"} {
		r := cluster.Request{Path: path, Header: http.Header{header: {"DELETE"}}}
		if err := attack.Expect(ctx, reader.Actor, r, http.StatusOK); err != nil {
			return err
		}
		r = attack.Request(http.MethodPost, path+"?_method=DELETE", `{}`)
		r.Header = http.Header{header: {"DELETE"}}
		if err := attack.Expect(ctx, reader.Actor, r, http.StatusForbidden, http.StatusMethodNotAllowed); err != nil {
			return err
		}
	}
	return attack.Expect(ctx, t.Root(), cluster.Request{Path: path}, http.StatusOK) // it is still there
}

// patchedIdentity tries to change the identity of an object by patches of every type.
func patchedIdentity(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	root, path := t.Root(), attack.ConfigMaps(namespace)+"/fixed"
	if err := root.Create(ctx, attack.ConfigMaps(namespace), attack.ConfigMap("fixed", "")); err != nil {
		return err
	}
	before, err := identity(ctx, root, path)
	if err != nil {
		return err
	}
	for _, field := range []string{`"metadata":{"name":"other"}`, `"metadata":{"namespace":"default"}`, `"metadata":{"uid":"other"}`,
		`"metadata":{"creationTimestamp":"1999-01-01T00:00:00Z"}`, `"metadata":{"deletionTimestamp":"1999-01-01T00:00:00Z"}`,
		`"kind":"Secret"`, `"apiVersion":"v2"`, `"metadata":null`, `"metadata":{"resourceVersion":"1"}`, `"metadata":{"uid":null}`} {
		for _, media := range []string{"application/merge-patch+json", "application/strategic-merge-patch+json"} {
			if _, err := root.Do(ctx, cluster.Request{Method: http.MethodPatch, Path: path, Type: media, Body: "{" + field + "}"}); err != nil {
				return err
			}
		}
		apply := `{"apiVersion":"v1","kind":"ConfigMap",` + field + `}`
		if _, err := root.Do(ctx, cluster.Request{Method: http.MethodPatch, Path: path + "?fieldManager=m&force=true",
			Type: "application/apply-patch+yaml", Body: apply}); err != nil {
			return err
		}
	}
	for _, pointer := range []string{"/metadata/name", "/metadata/namespace", "/metadata/uid", "/kind", "/apiVersion", "/metadata/creationTimestamp"} {
		if _, err := root.Do(ctx, cluster.Request{Method: http.MethodPatch, Path: path, Type: "application/json-patch+json",
			Body: `[{"op":"replace","path":"` + pointer + `","value":"other"}]`}); err != nil {
			return err
		}
	}
	after, err := identity(ctx, root, path)
	if err == nil && after != before {
		err = fmt.Errorf("patches made %+v of %+v", after, before)
	}
	return err
}

// object holds the identifying fields of an object.
type object struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Namespace, UID, CreationTimestamp, DeletionTimestamp string }
}

func identity(ctx context.Context, a *attack.Actor, path string) (o object, err error) {
	return o, a.Must(ctx, cluster.Request{Path: path}, &o)
}

// crossedSubresources tries to write subresources with permission for the resource only,
// and their fields through the resource.
func crossedSubresources(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, attack.Rule("get,create,update,patch", "", "pods"))
	if err != nil {
		return err
	}
	pods := "/api/v1/namespaces/" + mallory.Namespace + "/pods"
	body := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"a"}]}}`
	if err := t.Root().Create(ctx, pods, body); err != nil {
		return err
	}
	merge := func(path, body string) cluster.Request {
		return cluster.Request{Method: http.MethodPatch, Path: path, Type: "application/merge-patch+json", Body: body}
	}
	for _, r := range []cluster.Request{
		merge(pods+"/p/status", `{"status":{"phase":"Running"}}`),
		merge(pods+"/p/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"e","image":"e"}]}}`),
		attack.Request(http.MethodPost, pods+"/p/binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`),
		attack.Request(http.MethodPost, pods+"/p/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`),
	} {
		if err := attack.Expect(ctx, mallory.Actor, r, http.StatusForbidden); err != nil {
			return err
		}
	}
	if _, err := mallory.Do(ctx, merge(pods+"/p", `{"status":{"phase":"Running"},"spec":{"nodeName":"n"}}`)); err != nil {
		return err
	}
	var pod struct {
		Status struct{ Phase string }
	}
	if err := t.Root().Must(ctx, cluster.Request{Path: pods + "/p"}, &pod); err != nil {
		return err
	}
	if pod.Status.Phase == "Running" {
		return fmt.Errorf("the status was written through the resource")
	}
	return nil
}

// continueTokens uses the continue token of one list for another one, and forged tokens.
func continueTokens(ctx context.Context, t *attack.Target) error {
	word, path, err := attack.Secret(ctx, t)
	if err != nil {
		return err
	}
	mallory, err := t.User(ctx, attack.Rule("list", "", "configmaps"))
	if err != nil {
		return err
	}
	for i := range 4 {
		if err := t.Root().Create(ctx, attack.ConfigMaps(mallory.Namespace), attack.ConfigMap(fmt.Sprintf("c%d", i), "")); err != nil {
			return err
		}
	}
	var page struct{ Metadata struct{ Continue string } }
	if err := t.Root().Must(ctx, cluster.Request{Path: attack.ConfigMaps(mallory.Namespace) + "?limit=2"}, &page); err != nil {
		return err
	}
	tokens := []string{page.Metadata.Continue, "x", strings.Repeat("A", 10_000)}
	for _, forged := range []string{`{"v":"meta.example.com/v1","rv":-1,"start":"../../secrets/"}`, `{"v":1,"rv":1,"start":"../"}`, `{"rv":9223372036854775807}`} {
		tokens = append(tokens, base64.RawURLEncoding.EncodeToString([]byte(forged)))
	}
	secrets := path[:strings.LastIndex(path, "/")]
	for _, token := range tokens {
		if err := attack.Expect(ctx, mallory.Actor, cluster.Request{Path: secrets + "?limit=2&continue=" + token}, http.StatusForbidden); err != nil {
			return err
		}
		answer, err := mallory.Send(ctx, http.MethodGet, attack.ConfigMaps(mallory.Namespace)+"?limit=2&continue="+token, "")
		if err != nil {
			return err
		}
		if strings.Contains(answer.Body, word) || answer.Code >= 500 {
			return fmt.Errorf("a continue token is answered with %d: %.200s", answer.Code, answer.Body)
		}
	}
	return nil
}

// bootstrapTokens sends well-formed and malformed tokens that are not in any Secret.
func bootstrapTokens(ctx context.Context, t *attack.Target) error {
	for _, token := range []string{"abcdef.0123456789abcdef", "abcdef.", ".0123456789abcdef", "ABCDEF.0123456789ABCDEF", "abcdef.0123456789abcdef.x", "../../x.0123456789abcdef"} {
		if err := attack.Expect(ctx, t.As(token), cluster.Request{Path: "/api"}, http.StatusUnauthorized); err != nil {
			return err
		}
	}
	return nil
}
