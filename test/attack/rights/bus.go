package rights

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/intruder"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

func busTrials() []attack.Trial {
	return []attack.Trial{
		{Name: "BusSecrecy", Finding: "A4", Separate: true, Run: busSecrecy},
		{Name: "BusForgery", Finding: "A4", Separate: true, Run: busForgery},
		{Name: "BusReplay", Finding: "A4", Separate: true, Run: busReplay},
		{Name: "BusFuture", Finding: "A4", Separate: true, Run: busFuture},
	}
}

// intrude connects to the bus with a certificate of the peers' CA that names no service. It
// returns nil if the bus rejects the connection, which is a success too.
func intrude(t *attack.Target) (*intruder.Intruder, error) {
	files, err := t.Peers.Authority.Issue(t.Dir, "nobody")
	if err != nil {
		return nil, err
	}
	i, err := intruder.Connect(t.Peers.NATS, files)
	if err != nil {
		return nil, nil
	}
	return i, nil
}

// busSecrecy receives messages while a Secret is written.
func busSecrecy(ctx context.Context, t *attack.Target) error {
	i, err := intrude(t)
	if i == nil || err != nil {
		return err
	}
	defer i.Close()
	word, _, err := attack.Secret(ctx, t)
	if err != nil {
		return err
	}
	attack.Wait(ctx, time.Second)
	for _, spelling := range []string{word, base64.StdEncoding.EncodeToString([]byte(word))} {
		if i.Heard(spelling) {
			return errors.New("messages on the bus reveal the content of Secrets")
		}
	}
	return nil
}

// bindings returns the type of the forged change.
func bindings() resource.GroupResource {
	return resource.GroupResource{Group: "rbac.authorization.platform.io", Resource: "clusterrolebindings"}
}

const bindingsSubject = "changes.rbac_authorization_platform_io.clusterrolebindings._"

// busForgery forges a binding to cluster-admin.
func busForgery(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, "")
	if err != nil {
		return err
	}
	i, err := intrude(t)
	if i == nil || err != nil {
		return err
	}
	defer i.Close()
	current, err := attack.Head(ctx, t, rbac+"/clusterrolebindings")
	if err != nil {
		return err
	}
	name, revision := attack.Unique("forged"), current+1000
	body := fmt.Sprintf(`{"apiVersion":"rbac.authorization.platform.io/v1","kind":"ClusterRoleBinding",
		"metadata":{"name":%q,"uid":%q,"resourceVersion":"%d"},"roleRef":{"apiGroup":"rbac.authorization.platform.io","kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"kind":"ServiceAccount","name":"intruder","namespace":%q}]}`, name, name, revision, mallory.Namespace)
	// Revisions increase meanwhile: the forged one is in the future.
	change := services.Change{Type: services.Added, Previous: current,
		Object: services.Object{Key: resource.Key{GroupResource: bindings(), Name: name}, Revision: revision, UID: name, JSON: []byte(body)}}
	if err := i.Forge(bindingsSubject, change); err != nil {
		return nil // not even accepted
	}
	for range 5 {
		attack.Wait(ctx, 200*time.Millisecond)
		if err := attack.Expect(ctx, mallory.Actor, cluster.Request{Path: attack.SecretsPath}, http.StatusForbidden); err != nil {
			return fmt.Errorf("with a forged binding: %w", err)
		}
	}
	return nil
}

// busReplay replays the messages about a binding after the binding was deleted.
func busReplay(ctx context.Context, t *attack.Target) error {
	i, err := intrude(t)
	if i == nil || err != nil {
		return err
	}
	defer i.Close()
	mallory, err := t.User(ctx, attack.Rule("list", "", "secrets"))
	if err != nil {
		return err
	}
	if err := attack.Expect(ctx, mallory.Actor, cluster.Request{Path: "/api/v1/secrets"}, http.StatusOK); err != nil {
		return err
	}
	if err := attack.Expect(ctx, t.Root(), attack.Request(http.MethodDelete, rbac+"/clusterrolebindings/"+mallory.Namespace, ""), http.StatusOK); err != nil {
		return err
	}
	refused := func() (bool, error) {
		answer, err := mallory.Send(ctx, http.MethodGet, "/api/v1/secrets", "")
		return answer.Code == http.StatusForbidden, err
	}
	if err := attack.Eventually(ctx, 10*time.Second, "a revoked user is refused", refused); err != nil {
		return err
	}
	for range 3 {
		i.Repeat("clusterrolebindings")
		i.Repeat("") // everything, progress as well
		attack.Wait(ctx, 300*time.Millisecond)
		if no, err := refused(); err != nil || !no {
			return fmt.Errorf("with a repeated message, a revoked right is back (%v)", err) //nolint:errorlint // may be nil
		}
	}
	return nil
}

// busFuture sends changes with revisions in the far future, and garbage: watches have to
// continue.
func busFuture(ctx context.Context, t *attack.Target) error {
	i, err := intrude(t)
	if i == nil || err != nil {
		return err
	}
	defer i.Close()
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	current, err := attack.Head(ctx, t, attack.ConfigMaps(namespace))
	if err != nil {
		return err
	}
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "configmaps"}, Namespace: namespace, Name: "future"}
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"future","namespace":%q,"resourceVersion":"%d"}}`, namespace, int64(1)<<60)
	for _, previous := range []int64{0, current, 1<<60 - 1} {
		_ = i.Forge("changes.core.configmaps."+namespace, services.Change{Type: services.Added, Previous: previous,
			Object: services.Object{Key: key, Revision: 1 << 60, UID: "x", JSON: []byte(body)}})
	}
	for _, junk := range []string{"", "\x00", "\x0a\xff\xff\xff\xff\x0f", "garbage"} {
		_ = i.Publish("changes.core.configmaps."+namespace, []byte(junk))
		_ = i.Publish("changes.progress", []byte(junk))
	}
	return attack.Promptly(ctx, 15*time.Second, "a watch after forged changes", func(ctx context.Context) error {
		return attack.Sees(ctx, t, namespace, current)
	})
}
