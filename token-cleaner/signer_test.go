package tokencleaner

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clock "k8s.io/utils/clock/testing"

	"github.com/portico-platform/portico/services/kit/worker"
)

const secretPart = "0123456789abcdef"

// bootstrap returns the secret of a token that may sign; more are key, value pairs of
// its data.
func bootstrap(id string, more ...string) *unstructured.Unstructured {
	s := secret("bootstrap-token-"+id, "")
	data := s.Object["data"].(map[string]any)
	for entries := append([]string{"token-id", id, "token-secret", secretPart, "usage-bootstrap-signing", "true"}, more...); len(entries) > 0; entries = entries[2:] {
		data[entries[0]] = base64.StdEncoding.EncodeToString([]byte(entries[1]))
	}
	return s
}

// signing starts a signer of cluster-info with tokens; it ends with the test.
func signing(t *testing.T, fullToken bool, tokens ...runtime.Object) (infos, secrets dynamic.ResourceInterface) {
	t.Helper()
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	all := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{configMaps: "ConfigMapList"},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": clusterInfo, "namespace": "platform-public"},
			"data":     map[string]any{payload: "content", signatures + "stale0": "x", "other": "kept"}}})
	infos, secrets = all.Resource(configMaps).Namespace("platform-public"), client(tokens...)
	s := &signer{configMaps: infos, info: worker.NewInformer(infos, ""), tokens: worker.NewInformer(secrets, ""), fullToken: fullToken,
		queue: worker.NewQueue[string](signerName, slog.New(slog.DiscardHandler)), clock: clock.NewFakePassiveClock(epoch), log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- s.run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return infos, secrets
}

func entries(t *testing.T, infos dynamic.ResourceInterface) map[string]string {
	t.Helper()
	info, err := infos.Get(t.Context(), clusterInfo, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(info.Object, "data")
	return data
}

func TestClusterInfoIsSigned(t *testing.T) {
	for fullToken, key := range map[bool]string{true: "aaaaaa." + secretPart, false: secretPart} {
		infos, secrets := signing(t, fullToken, bootstrap("aaaaaa", "expiration", epoch.Add(time.Hour).Format(time.RFC3339)),
			bootstrap("bbbbbb", "usage-bootstrap-signing", "false"), bootstrap("cccccc", "expiration", epoch.Format(time.RFC3339)),
			bootstrap("dddddd", "expiration", "tomorrow"), bootstrap("eeeeee", "token-secret", "short"), bootstrap("ffffff", "token-id", "gggggg"))
		waitFor(t, func() bool { _, stale := entries(t, infos)[signatures+"stale0"]; return !stale })
		got, signed := entries(t, infos), 1
		if !fullToken {
			signed = 2 // also the short secret
		}
		if len(got) != 2+signed || (got[signatures+"eeeeee"] == "") != fullToken || got["other"] != "kept" || got[payload] != "content" {
			t.Errorf("cluster-info holds %q", got)
		}
		head, signature, _ := strings.Cut(got[signatures+"aaaaaa"], "..")
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(head + "." + base64.RawURLEncoding.EncodeToString([]byte("content"))))
		header, _ := base64.RawURLEncoding.DecodeString(head)
		if signature != base64.RawURLEncoding.EncodeToString(mac.Sum(nil)) || string(header) != `{"alg":"HS256","kid":"aaaaaa"}` {
			t.Errorf("the signature with %s is %s", key, got[signatures+"aaaaaa"])
		}
		if err := secrets.Delete(t.Context(), "bootstrap-token-aaaaaa", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return len(entries(t, infos)) == 1+signed })
		if _, err := secrets.Create(t.Context(), bootstrap("hhhhhh"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return entries(t, infos)[signatures+"hhhhhh"] != "" })
	}
}
