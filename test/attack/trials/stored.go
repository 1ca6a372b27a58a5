package trials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kms "k8s.io/kms/apis/v2"

	"github.com/portico-platform/portico/services/kit/kittest/kmsplugin"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// below are the trials of what is stored, and of who encrypts it.
func below() []attack.Trial {
	return []attack.Trial{
		{Name: "DamagedValues", Finding: "A2", Separate: true, Run: damagedValues},
		{Name: "HostileKMSPlugin", Finding: "A8", Run: hostileKMSPlugin},
	}
}

// soon is the longest time of what must not wait for the victim of a trial.
const soon = 5 * time.Second

// damages are what becomes of a value.
func damages(large bool) map[string]func(value []byte) []byte {
	size := 200 << 10
	if large {
		size = 1 << 20
	}
	inside := func(more string) func([]byte) []byte {
		return func(value []byte) []byte { return append(bytes.TrimSuffix(bytes.Clone(value), []byte("}")), more...) }
	}
	return map[string]func([]byte) []byte{
		"garbage":      func([]byte) []byte { return []byte("garbage") },
		"nothing":      func([]byte) []byte { return nil },
		"truncated":    func(value []byte) []byte { return value[:len(value)/2] },
		"not a text":   func(value []byte) []byte { return bytes.ReplaceAll(value, []byte(`"`), []byte("\xff")) },
		"another type": func(value []byte) []byte { return bytes.Replace(value, []byte(`"kind":"`), []byte(`"kind":"Other`), 1) },
		"a later version": func(value []byte) []byte {
			return bytes.Replace(value, []byte(`"apiVersion":"v1`), []byte(`"apiVersion":"v77`), 1)
		},
		"deep":           inside(`,"x":` + strings.Repeat("[", size)),
		"many values":    inside(`,"x":[` + strings.Repeat("0,", size/2)),
		"an unknown key": func([]byte) []byte { return []byte("portico:enc:aesgcm:v1:gone:" + strings.Repeat("x", size)) },
	}
}

// damagedValues damages a quota in etcd, in each way. It must not count as absent: nothing that it governs is allowed, its
// users are not disturbed elsewhere, and an administrator mends it through the API.
func damagedValues(ctx context.Context, t *attack.Target) error {
	governed, err := t.User(ctx, attack.Rule("create", "", "configmaps"))
	if err != nil {
		return err
	}
	other, err := t.User(ctx, attack.Rule("create", "", "configmaps"))
	if err != nil {
		return err
	}
	v := &victim{t: t, governed: governed, other: other, path: "/api/v1/namespaces/" + governed.Namespace + "/resourcequotas"}
	for name, damage := range damages(t.Large) {
		if err := v.damaged(ctx, damage); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// victim is a quota that lets a user create nothing, and that is damaged.
type victim struct {
	t               *attack.Target
	governed, other *attack.User
	path            string
}

// create creates an object as a user, and reports whether it is refused.
func (v *victim) create(ctx context.Context, u *attack.User) (refused bool, err error) {
	a, err := u.Provoke(ctx, attack.Request(http.MethodPost, attack.ConfigMaps(u.Namespace), attack.ConfigMap(attack.Unique("c"), "")))
	return a.Code >= 400, err
}

// make creates the quota, and waits until it governs. Its usage is set here, because the quota controller reads its list
// again only some time after the damage before was mended.
func (v *victim) make(ctx context.Context) error {
	counted := `{"status":{"hard":{"count/configmaps":"0"},"used":{"count/configmaps":"0"}}}`
	err := v.t.Root().Create(ctx, v.path, `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"victim"},"spec":{"hard":{"count/configmaps":"0"}}}`)
	if err == nil {
		err = attack.Expect(ctx, v.t.Root(), cluster.Request{Method: http.MethodPatch, Path: v.path + "/victim/status", Type: "application/merge-patch+json", Body: counted}, http.StatusOK)
	}
	if err != nil {
		return err
	}
	return attack.Eventually(ctx, 20*time.Second, "the quota refuses", func() (bool, error) { return v.create(ctx, v.governed) })
}

// replace replaces the stored value by a damaged one, until the API says so.
func (v *victim) replace(ctx context.Context, damage func([]byte) []byte) error {
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "resourcequotas"}, Namespace: v.governed.Namespace, Name: "victim"}.Path()
	stored, err := v.t.Peers.Etcd.Get(ctx, key)
	if err == nil && len(stored.Kvs) != 1 {
		err = errors.New("it is not stored under " + key)
	}
	if err == nil {
		_, err = v.t.Peers.Etcd.Put(ctx, key, string(damage(stored.Kvs[0].Value)))
	}
	if err != nil {
		return err
	}
	return attack.Eventually(ctx, 20*time.Second, "a damaged quota is an error", func() (bool, error) {
		a, err := v.t.Root().Provoke(ctx, cluster.Request{Path: v.path + "/victim"})
		return a.Code == http.StatusInternalServerError, err
	})
}

// damaged damages the quota in one way, and mends it.
func (v *victim) damaged(ctx context.Context, damage func([]byte) []byte) error {
	if err := v.make(ctx); err != nil {
		return err
	}
	if err := attack.Modest(v.t, 100<<20, func() error { return v.replace(ctx, damage) }); err != nil {
		return err
	}
	for range attack.Count(v.t, 3, 20) {
		if refused, err := v.create(ctx, v.governed); err != nil || !refused {
			return errors.Join(attack.ErrAccepted, err)
		}
		if err := attack.Promptly(ctx, soon, "a create of another user", func(ctx context.Context) error {
			refused, err := v.create(ctx, v.other)
			if refused {
				err = errors.New("it is refused")
			}
			return err
		}); err != nil {
			return err
		}
	}
	if err := attack.Expect(ctx, v.t.Root(), attack.Request(http.MethodDelete, v.path+"/victim", ""), http.StatusOK); err != nil {
		return err
	}
	return attack.Eventually(ctx, 20*time.Second, "the user may create again", func() (bool, error) {
		refused, err := v.create(ctx, v.governed)
		return !refused, err
	})
}

// misbehaviour is how a KMS plugin does not do its work.
type misbehaviour struct {
	failure error
	kmsplugin.Faults
}

// misbehaviours returns them by name. hang blocks for a while.
func misbehaviours(hang func()) map[string]misbehaviour {
	large := bytes.Repeat([]byte("x"), 3<<20)
	newKey := func(r *kms.StatusResponse) { r.KeyId = attack.Unique("key") }
	return map[string]misbehaviour{
		"fails":            {failure: status.Error(codes.Internal, "no")},
		"hangs":            {Faults: kmsplugin.Faults{Status: func(*kms.StatusResponse) { hang() }, Encrypt: func(*kms.EncryptResponse) { hang() }}},
		"encrypts wrongly": {Faults: kmsplugin.Faults{Status: newKey, Encrypt: func(r *kms.EncryptResponse) { r.Ciphertext = []byte("wrong") }}},
		"decrypts wrongly": {Faults: kmsplugin.Faults{Status: newKey, Decrypt: func(r *kms.DecryptResponse) { r.Plaintext = []byte("wrong") }}},
		"answers at length": {Faults: kmsplugin.Faults{
			Status:  func(r *kms.StatusResponse) { r.KeyId, r.Healthz = string(large), string(large) },
			Encrypt: func(r *kms.EncryptResponse) { r.KeyId, r.Ciphertext = string(large), large }}},
	}
}

// counted returns a misbehaviour that counts the calls for the status, which the suite makes by itself.
func (m misbehaviour) counted() (misbehaviour, *atomic.Int64) {
	called, change := new(atomic.Int64), m.Status
	m.Status = func(r *kms.StatusResponse) {
		called.Add(1)
		if change != nil {
			change(r)
		}
	}
	return m, called
}

// hostileKMSPlugin lets the plugin that encrypts one type hang, fail, answer wrongly and at length. Other types are
// written meanwhile, what was acknowledged can be read afterwards, and the processes stay small.
func hostileKMSPlugin(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	defer t.KMS.Misbehave(kmsplugin.Faults{})
	defer t.KMS.Fail(nil)
	ended := make(chan struct{})
	defer close(ended)
	hang := func() {
		select {
		case <-ended:
		case <-time.After(soon):
		}
	}
	v := &vault{t: t, namespace: namespace}
	for name, m := range misbehaviours(hang) {
		if err := v.during(ctx, m); err != nil {
			return fmt.Errorf("a plugin that %s: %w", name, err)
		}
		if err := attack.Eventually(ctx, 60*time.Second, "the plugin is used again after it "+name, func() (bool, error) { return v.create(ctx) }); err != nil {
			return err
		}
	}
	return v.complete(ctx)
}

// vault are the objects that the plugin encrypts.
type vault struct {
	t            *attack.Target
	namespace    string
	acknowledged []string
}

func (v *vault) path() string { return "/api/v1/namespaces/" + v.namespace + "/podtemplates" }

// create creates an object, and reports whether it is stored.
func (v *vault) create(ctx context.Context) (bool, error) {
	name := attack.Unique("t")
	a, err := v.t.Root().Provoke(ctx, attack.Request(http.MethodPost, v.path(),
		`{"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"`+name+`"},"template":{"spec":{"containers":[{"name":"a","image":"a"}]}}}`))
	stored := err == nil && a.Code < 300
	if stored {
		v.acknowledged = append(v.acknowledged, name)
	}
	return stored, err
}

// during creates objects while the plugin misbehaves, and others that it does not encrypt, until the suite has called it.
func (v *vault) during(ctx context.Context, m misbehaviour) error {
	m, called := m.counted()
	v.t.KMS.Fail(m.failure)
	v.t.KMS.Misbehave(m.Faults)
	defer v.t.KMS.Misbehave(kmsplugin.Faults{})
	defer v.t.KMS.Fail(nil)
	return attack.Modest(v.t, 150<<20, func() error {
		for until := time.Now().Add(3 * soon); called.Load() < int64(attack.Count(v.t, 1, 2)) && time.Now().Before(until); <-time.After(50 * time.Millisecond) {
			if _, err := v.create(ctx); err != nil {
				return err
			}
			if err := attack.Promptly(ctx, soon, "a write of another type", func(ctx context.Context) error {
				return v.t.Root().Create(ctx, attack.ConfigMaps(v.namespace), attack.ConfigMap(attack.Unique("c"), ""))
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// complete returns an error for each object that was acknowledged and cannot be read.
func (v *vault) complete(ctx context.Context) (lost error) {
	for _, name := range v.acknowledged {
		lost = errors.Join(lost, attack.Expect(ctx, v.t.Root(), cluster.Request{Path: v.path() + "/" + name}, http.StatusOK))
	}
	return lost
}
