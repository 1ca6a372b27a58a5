package attack

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/portico-platform/portico/test/attack/rawhttp"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// Definitions is the path of the definitions of custom types, SecretsPath that of all
// Secrets.
const (
	Definitions = "/apis/apiextensions.platform.io/v1/customresourcedefinitions"
	SecretsPath = "/api/v1/secrets"
)

// ErrAccepted reports that a request that must be refused was accepted.
var ErrAccepted = errors.New("the request was accepted")

// OpenSchema is a schema that keeps unknown fields.
const OpenSchema = `{"type":"object","x-platform-preserve-unknown-fields":true}`

// Request is short for a request with a JSON body.
func Request(method, path, body string) cluster.Request {
	return cluster.Request{Method: method, Path: path, Body: body}
}

// Expect sends a request and reports an answer with another status code.
func Expect(ctx context.Context, a *Actor, r cluster.Request, codes ...int) error {
	_, err := Ask(ctx, a, r, codes...)
	return err
}

// Ask is Expect for a trial that evaluates the response.
func Ask(ctx context.Context, a *Actor, r cluster.Request, codes ...int) (cluster.Answer, error) {
	answer, err := a.Do(ctx, r)
	if err == nil && !slices.Contains(codes, answer.Code) {
		err = fmt.Errorf("%s %.120s: got %d, want %v: %.200s", r.Method, r.Path, answer.Code, codes, answer.Body)
	}
	return answer, err
}

// ConfigMaps is the path of the config maps of a namespace.
func ConfigMaps(namespace string) string { return "/api/v1/namespaces/" + namespace + "/configmaps" }

// ConfigMap is a config map as JSON, with more members after its metadata.
func ConfigMap(name, more string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}%s}`, name, more)
}

// Secret creates a Secret with a unique word and returns that word and the path.
func Secret(ctx context.Context, t *Target) (word, path string, err error) {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return "", "", err
	}
	word = Unique("word")
	path = "/api/v1/namespaces/" + namespace + "/secrets"
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"hidden","annotations":{"word":%q}}}`, word)
	return word, path + "/hidden", t.Root().Create(ctx, path, body)
}

// Define defines a custom type with a unique name and returns the path of its objects in
// a namespace.
func Define(ctx context.Context, t *Target, namespace, schema string) (path, kind string, err error) {
	plural := strings.ReplaceAll(Unique("thing"), "-", "") + "s"
	body := fmt.Sprintf(`{"apiVersion":"apiextensions.platform.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":%[1]q,"kind":%[2]q},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%[3]s}}]}}`, plural, "K"+plural, schema)
	if err := t.Root().Create(ctx, Definitions, body); err != nil {
		return "", "", err
	}
	path = "/apis/example.com/v1/namespaces/" + namespace + "/" + plural
	return path, "K" + plural, Eventually(ctx, 20*time.Second, "a custom type is served", func() (bool, error) {
		answer, err := t.Root().Do(ctx, cluster.Request{Path: path})
		return answer.Code == http.StatusOK, err
	})
}

// Server returns the front door as a server for raw HTTP clients.
func Server(t *Target) rawhttp.Server {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(t.Admin.CA)
	return rawhttp.Server{Address: t.Address, Roots: roots}
}

// Count returns small, or large in a large session.
func Count(t *Target, small, large int) int {
	if t.Large {
		return large
	}
	return small
}

// Promptly runs a function that has to end within a time limit. An error reports how long
// it took. The limit is far above the usual duration, so that only a hanging function
// exceeds it.
func Promptly(ctx context.Context, limit time.Duration, what string, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	started := time.Now()
	if err := f(ctx); err != nil {
		return fmt.Errorf("%s, after %v: %w", what, time.Since(started).Round(time.Millisecond), err)
	}
	return nil
}

// Modest runs a function and fails if the memory of the suite's processes grows by more
// than the limit meanwhile.
func Modest(t *Target, limit int64, f func() error) error {
	before, most := t.Resident(), int64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		for {
			most = max(most, t.Resident()-before)
			select {
			case <-stop:
				return
			case <-ticks.C:
			}
		}
	}()
	err := f()
	close(stop)
	<-done
	if most > limit {
		return fmt.Errorf("the processes grew by %d MiB, more than %d (and: %v)", most>>20, limit>>20, err) //nolint:errorlint // may be nil
	}
	return err
}

// Names returns the names of the objects in a collection.
func Names(ctx context.Context, a *Actor, path string) ([]string, error) {
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	answer, err := Ask(ctx, a, cluster.Request{Path: path}, http.StatusOK)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(answer.Body), &list); err != nil {
		return nil, err
	}
	var all []string
	for _, item := range list.Items {
		all = append(all, item.Metadata.Name)
	}
	return all, nil
}

// Sees creates an object and waits until a watch that starts at a revision reports it.
func Sees(ctx context.Context, t *Target, namespace string, from int64) error {
	response, err := t.Root().Cluster.Send(ctx, cluster.Request{Path: ConfigMaps(namespace) + "?watch=true&resourceVersion=" + strconv.FormatInt(from, 10)})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := t.Root().Create(ctx, ConfigMaps(namespace), ConfigMap("real", "")); err != nil {
		return err
	}
	for events := json.NewDecoder(response.Body); ; {
		var event struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		if err := events.Decode(&event); err != nil {
			return err
		}
		switch name := event.Object.Metadata.Name; {
		case name == "real":
			return nil
		case name == "future" || event.Type == "ERROR":
			return fmt.Errorf("the watch reports %s %s", event.Type, name)
		}
	}
}

// Head returns the revision of a list.
func Head(ctx context.Context, t *Target, path string) (int64, error) {
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := t.Root().Must(ctx, cluster.Request{Path: path}, &list); err != nil {
		return 0, err
	}
	return strconv.ParseInt(list.Metadata.ResourceVersion, 10, 64)
}
