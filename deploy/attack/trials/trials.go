// Package trials holds the trials of package attack: one for each finding of the
// security review, and for the most valuable of the things that held. A trial
// decides what the suite must not do; it makes what it needs through the API, in
// namespaces of its own, and can run again and again beside others. Names are those
// of the platform vocabulary, which the target has to speak.
package trials

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/deploy/attack"
	"github.com/portico-platform/portico/deploy/attack/rawhttp"
	"github.com/portico-platform/portico/deploy/e2e/cluster"
)

// All returns every trial, the disruptive ones last.
func All() []attack.Trial {
	return slices.Concat(escalations(), busTrials(), exhaustions(), weights(), hostileWebhooks(), held(), identities(), protocols(), faults())
}

const (
	rbac        = "/apis/rbac.authorization.platform.io/v1"
	definitions = "/apis/apiextensions.platform.io/v1/customresourcedefinitions"
)

// request is short for a request with a JSON body.
func request(method, path, body string) cluster.Request {
	return cluster.Request{Method: method, Path: path, Body: body}
}

// expect sends a request and reports an answer with another status code.
func expect(ctx context.Context, a *attack.Actor, r cluster.Request, codes ...int) error {
	_, err := ask(ctx, a, r, codes...)
	return err
}

// ask is expect for a trial that looks at the answer.
func ask(ctx context.Context, a *attack.Actor, r cluster.Request, codes ...int) (cluster.Answer, error) {
	answer, err := a.Do(ctx, r)
	if err == nil && !slices.Contains(codes, answer.Code) {
		err = fmt.Errorf("%s %.120s: got %d, want %v: %.200s", r.Method, r.Path, answer.Code, codes, answer.Body)
	}
	return answer, err
}

func configMaps(namespace string) string { return "/api/v1/namespaces/" + namespace + "/configmaps" }

func configMap(name, more string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}%s}`, name, more)
}

// secret makes a Secret that holds a new word, and returns that word and the path.
func secret(ctx context.Context, t *attack.Target) (word, path string, err error) {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return "", "", err
	}
	word = attack.Unique("word")
	path = "/api/v1/namespaces/" + namespace + "/secrets"
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"hidden","annotations":{"word":%q}}}`, word)
	return word, path + "/hidden", t.Root().Create(ctx, path, body)
}

// define defines a custom type of a new name and returns the path of its objects in
// a namespace.
func define(ctx context.Context, t *attack.Target, namespace, schema string) (path, kind string, err error) {
	plural := strings.ReplaceAll(attack.Unique("thing"), "-", "") + "s"
	body := fmt.Sprintf(`{"apiVersion":"apiextensions.platform.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.attack.example.com"},
		"spec":{"group":"attack.example.com","scope":"Namespaced","names":{"plural":%[1]q,"kind":%[2]q},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%[3]s}}]}}`, plural, "K"+plural, schema)
	if err := t.Root().Create(ctx, definitions, body); err != nil {
		return "", "", err
	}
	path = "/apis/attack.example.com/v1/namespaces/" + namespace + "/" + plural
	return path, "K" + plural, attack.Eventually(ctx, 20*time.Second, "a custom type is served", func() (bool, error) {
		answer, err := t.Root().Do(ctx, cluster.Request{Path: path})
		return answer.Code == http.StatusOK, err
	})
}

// openSchema keeps whatever an object holds.
const openSchema = `{"type":"object","x-platform-preserve-unknown-fields":true}`

// server is the front door for raw clients.
func server(t *attack.Target) rawhttp.Server {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(t.Admin.CA)
	return rawhttp.Server{Address: t.Address, Roots: roots}
}

// count is small unless the session is a large one.
func count(t *attack.Target, small, large int) int {
	if t.Large {
		return large
	}
	return small
}

// promptly runs something that has to end within a time, and reports how long it took
// otherwise. The time is far above what is usual: it tells hanging from working.
func promptly(ctx context.Context, limit time.Duration, what string, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	started := time.Now()
	if err := f(ctx); err != nil {
		return fmt.Errorf("%s, after %v: %w", what, time.Since(started).Round(time.Millisecond), err)
	}
	return nil
}

// modest runs something that may not make the suite hold much more memory.
func modest(t *attack.Target, limit int64, f func() error) error {
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
		return fmt.Errorf("the processes grew by %d MiB, more than %d (and: %v)", most>>20, limit>>20, err)
	}
	return err
}

// names returns the names of the objects in a collection.
func names(ctx context.Context, a *attack.Actor, path string) ([]string, error) {
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	answer, err := ask(ctx, a, cluster.Request{Path: path}, http.StatusOK)
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
