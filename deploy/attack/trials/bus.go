package trials

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/portico-platform/portico/deploy/attack"
	"github.com/portico-platform/portico/deploy/attack/intruder"
	"github.com/portico-platform/portico/deploy/e2e/cluster"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

func busTrials() []attack.Trial {
	return []attack.Trial{
		{Name: "BusSecrecy", Finding: "A4", Separate: true, Run: busSecrecy},
		{Name: "BusForgery", Finding: "A4", Separate: true, Run: busForgery},
		{Name: "BusReplay", Finding: "A4", Separate: true, Run: busReplay},
		{Name: "BusFuture", Finding: "A4", Separate: true, Run: busFuture},
	}
}

// intrude joins the bus with a certificate of the peers' authority that names no
// service. It returns nil when the bus does not let it in, which is as good.
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

// busSecrecy listens while a Secret is written.
func busSecrecy(ctx context.Context, t *attack.Target) error {
	i, err := intrude(t)
	if i == nil || err != nil {
		return err
	}
	defer i.Close()
	word, _, err := secret(ctx, t)
	if err != nil {
		return err
	}
	attack.Wait(ctx, time.Second)
	for _, spelling := range []string{word, base64.StdEncoding.EncodeToString([]byte(word))} {
		if i.Heard(spelling) {
			return errors.New("whoever is on the bus reads what Secrets hold")
		}
	}
	return nil
}

// bindings is the type whose changes would be worth forging.
func bindings() resource.GroupResource {
	return resource.GroupResource{Group: "rbac.authorization.platform.io", Resource: "clusterrolebindings"}
}

const bindingsSubject = "changes.rbac_authorization_platform_io.clusterrolebindings._"

// busForgery makes up a binding to cluster-admin.
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
	current, err := head(ctx, t, rbac+"/clusterrolebindings")
	if err != nil {
		return err
	}
	name := attack.Unique("forged")
	body := fmt.Sprintf(`{"apiVersion":"rbac.authorization.platform.io/v1","kind":"ClusterRoleBinding",
		"metadata":{"name":%q,"uid":%q,"resourceVersion":"%d"},"roleRef":{"apiGroup":"rbac.authorization.platform.io","kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"kind":"ServiceAccount","name":"intruder","namespace":%q}]}`, name, name, current+1, mallory.Namespace)
	for range 5 { // the type moves on meanwhile: several guesses
		change := services.Change{Type: services.Added, Previous: current,
			Object: services.Object{Key: resource.Key{GroupResource: bindings(), Name: name}, Revision: current + 1, UID: name, JSON: []byte(body)}}
		if err := i.Forge(bindingsSubject, change); err != nil {
			return nil // not even accepted
		}
		attack.Wait(ctx, 300*time.Millisecond)
		if err := expect(ctx, mallory.Actor, cluster.Request{Path: "/api/v1/secrets"}, http.StatusForbidden); err != nil {
			return fmt.Errorf("with a forged binding: %w", err)
		}
		current++
	}
	return nil
}

// busReplay repeats what was heard when a binding was made, after it was deleted.
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
	if err := expect(ctx, mallory.Actor, cluster.Request{Path: "/api/v1/secrets"}, http.StatusOK); err != nil {
		return err
	}
	if err := expect(ctx, t.Root(), request(http.MethodDelete, rbac+"/clusterrolebindings/"+mallory.Namespace, ""), http.StatusOK); err != nil {
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
			return fmt.Errorf("with a repeated message, a revoked right is back (%v)", err)
		}
	}
	return nil
}

// busFuture sends changes of revisions that will not come for ages, and bytes that
// mean nothing: watches have to go on.
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
	current, err := head(ctx, t, configMaps(namespace))
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
	return promptly(ctx, 15*time.Second, "a watch after forged changes", func(ctx context.Context) error {
		return sees(ctx, t, namespace, current)
	})
}

// sees creates an object and waits until a watch from a revision on shows it.
func sees(ctx context.Context, t *attack.Target, namespace string, from int64) error {
	response, err := t.Root().Cluster.Send(ctx, cluster.Request{Path: configMaps(namespace) + "?watch=true&resourceVersion=" + strconv.FormatInt(from, 10)})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := t.Root().Create(ctx, configMaps(namespace), configMap("real", "")); err != nil {
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
			return fmt.Errorf("the watch shows %s %s", event.Type, name)
		}
	}
}

// head returns the revision of a list.
func head(ctx context.Context, t *attack.Target, path string) (int64, error) {
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := t.Root().Must(ctx, cluster.Request{Path: path}, &list); err != nil {
		return 0, err
	}
	return strconv.ParseInt(list.Metadata.ResourceVersion, 10, 64)
}
