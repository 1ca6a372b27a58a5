package trials

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

func faults() []attack.Trial {
	return []attack.Trial{
		{Name: "LostAnswers", Finding: "C1", Separate: true, Disruptive: true, Run: lostAnswers},
		{Name: "HealthWithoutAuthz", Finding: "C5", Separate: true, Disruptive: true, Run: healthWithoutAuthz},
		{Name: "ReadinessWithoutEtcd", Finding: "C5", Separate: true, Disruptive: true, Run: readinessWithoutEtcd},
	}
}

// lostAnswers drops etcd's responses to a write. The write must be applied at most once; a
// client that receives a conflict must not have written; and no response may request the
// repetition of a write with an unknown result (C2).
func lostAnswers(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	for i := range attack.Count(t, 2, 10) {
		name := fmt.Sprintf("lost-%d", i)
		path := attack.ConfigMaps(namespace) + "/" + name
		if err := t.Root().Create(ctx, attack.ConfigMaps(namespace), attack.ConfigMap(name, `,"data":{"v":"0"}`)); err != nil {
			return err
		}
		finalizer := `[{"op":"add","path":"/metadata/finalizers","value":["example.com/a"]}]`
		if err := attack.Expect(ctx, t.Root(), cluster.Request{Method: http.MethodPatch, Path: path, Type: "application/json-patch+json", Body: finalizer}, 200); err != nil {
			return err
		}
		before, err := read(ctx, t, path)
		if err != nil {
			return err
		}
		patch := cluster.Request{Method: http.MethodPatch, Path: path, Type: "application/json-patch+json",
			Body: `[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/b"},{"op":"test","path":"/data/v","value":"0"},{"op":"replace","path":"/data/v","value":"1"}]`}
		if err := lose(ctx, t, patch, path, before); err != nil {
			return fmt.Errorf("a JSON patch: %w", err)
		}
		if before, err = read(ctx, t, path); err != nil {
			return err
		}
		put := attack.Request(http.MethodPut, path, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"resourceVersion":%q,"finalizers":[]},"data":{"v":"2"}}`,
			name, before.Metadata.ResourceVersion))
		if err := lose(ctx, t, put, path, before); err != nil {
			return fmt.Errorf("a conditional update: %w", err)
		}
	}
	return nil
}

type stored struct {
	Metadata struct {
		ResourceVersion string
		Finalizers      []string
	}
	Data map[string]string
}

// read reads an object and retries until etcd is reachable.
func read(ctx context.Context, t *attack.Target, path string) (o stored, err error) {
	err = attack.Eventually(ctx, 30*time.Second, "reads succeed again", func() (bool, error) {
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		answer, err := t.Root().Provoke(within, cluster.Request{Path: path})
		if err != nil || answer.Code != http.StatusOK {
			return false, ctx.Err()
		}
		return true, t.Root().Must(ctx, cluster.Request{Path: path}, &o)
	})
	return o, err
}

// lose sends a write while responses are dropped and compares the response to the client
// with the stored object.
func lose(ctx context.Context, t *attack.Target, r cluster.Request, path string, before stored) error {
	link := t.Peers.StoreLink
	link.LoseAnswers(0)
	type result struct {
		answer cluster.Answer
		err    error
	}
	results := make(chan result, 1)
	go func() {
		within, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		answer, err := t.Root().Provoke(within, r)
		results <- result{answer, err}
	}()
	attack.Wait(ctx, 500*time.Millisecond) // etcd has applied it by now
	link.Heal()
	got := <-results
	after, err := read(ctx, t, path)
	if err != nil {
		return err
	}
	applied := after.Metadata.ResourceVersion != before.Metadata.ResourceVersion
	twice := 0
	for _, f := range after.Metadata.Finalizers {
		if f == "example.com/b" {
			twice++
		}
	}
	switch {
	case twice > 1:
		return errors.New("the write was applied twice")
	case got.err != nil:
		return fmt.Errorf("no response: %w", got.err)
	case got.answer.Code == http.StatusConflict && applied:
		return errors.New("the response is a conflict, but the write was applied")
	case got.answer.Code/100 == 2 && !applied:
		return errors.New("the response is a success, but the write was not applied")
	case got.answer.Code >= 500 && got.answer.Header.Get("Retry-After") != "" && applied:
		return fmt.Errorf("the client is asked to retry (%d), but the write was applied", got.answer.Code)
	}
	return nil
}

// healthWithoutAuthz checks /livez of the front door while authorization hangs.
func healthWithoutAuthz(ctx context.Context, t *attack.Target) error {
	for _, service := range []string{"authz", "authn"} {
		p := t.Process(service)
		if err := p.Pause(); err != nil {
			return err
		}
		err := attack.Promptly(ctx, 8*time.Second, "/livez without "+service, func(ctx context.Context) error {
			answer, err := t.As("").Provoke(ctx, cluster.Request{Path: "/livez"})
			if err == nil && answer.Code != http.StatusOK {
				err = fmt.Errorf("got %d: %.200s", answer.Code, answer.Body)
			}
			return err
		})
		if err := errors.Join(err, p.Resume(), t.Admin.Ready(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// readinessWithoutEtcd checks /readyz of the front door while etcd hangs: it has to fail
// soon.
func readinessWithoutEtcd(ctx context.Context, t *attack.Target) error {
	p := t.Process("etcd")
	if err := p.Pause(); err != nil {
		return err
	}
	started := time.Now()
	err := attack.Promptly(ctx, 12*time.Second, "/readyz without etcd", func(ctx context.Context) error {
		return attack.Eventually(ctx, 12*time.Second, "/readyz fails", func() (bool, error) {
			answer, err := t.Root().Provoke(ctx, cluster.Request{Path: "/readyz"})
			return answer.Code >= 500 && !strings.Contains(answer.Body, "panicked"), err
		})
	})
	if took := time.Since(started); err == nil && took > 10*time.Second {
		err = fmt.Errorf("it took %v until /readyz failed", took)
	}
	return errors.Join(err, p.Resume(), t.Admin.Ready(ctx))
}
