package protobuf_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	original "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	sigsjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services/vocabulary"
)

// samples returns the published samples of every kind, with all fields set, as JSON and as
// Protobuf.
func samples(tb testing.TB) map[schema.GroupVersionKind]sample {
	tb.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		tb.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata/HEAD/*.json"))
	if err != nil || len(files) == 0 {
		tb.Fatal("no samples", err)
	}
	all := map[schema.GroupVersionKind]sample{}
	for _, file := range files {
		var s sample
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var compact bytes.Buffer // as objects are stored
		if err := json.Compact(&compact, text); err != nil {
			tb.Fatal(file, err)
		}
		s.json = compact.Bytes()
		if s.message, err = os.ReadFile(strings.TrimSuffix(file, "json") + "pb"); err != nil {
			continue
		}
		var head metav1.TypeMeta
		if err := json.Unmarshal(s.json, &head); err != nil {
			tb.Fatal(file, err)
		}
		all[head.GroupVersionKind()] = s
	}
	return all
}

type sample struct{ json, message []byte }

// TestSamples converts every sample to Protobuf, which must equal the published bytes, and
// back.
func TestSamples(t *testing.T) {
	r := protobuf.NewRegistry(vocabulary.K8s())
	tried := 0
	for kind, s := range samples(t) {
		m, err := r.Find(kind)
		if err != nil {
			continue
		}
		tried++
		message, err := m.Append(nil, s.json)
		if err != nil {
			t.Error(kind, err)
			continue
		}
		if got := protobuf.AppendEnvelope(nil, kind, message); !bytes.Equal(got, s.message) {
			t.Errorf("%v: %d bytes differ from the %d published", kind, len(got), len(s.message))
		}
		back, err := m.Decode(message, nil)
		if err != nil {
			t.Error(kind, err)
			continue
		}
		var want map[string]any
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts(s.json, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, want) {
			t.Errorf("%v comes back as another object", kind)
		}
	}
	if tried < 80 {
		t.Errorf("only %d kinds have samples", tried)
	}
}

// TestSameMessages converts a sample of autoscaling/v2 as one of autoscaling/v2beta2, which no longer has Go
// types, to Protobuf and back.
func TestSameMessages(t *testing.T) {
	r := protobuf.NewRegistry(vocabulary.Platform())
	kind := schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	former := kind
	former.Version = "v2beta2"
	sample := bytes.Replace(samples(t)[kind].json, []byte(`"autoscaling/v2"`), []byte(`"autoscaling/v2beta2"`), 1)
	later, err := r.Find(kind)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Find(former)
	if err != nil {
		t.Fatal(err)
	}
	want, err := later.Append(nil, sample)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Append(nil, sample); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes instead of %d: %v", len(got), len(want), err)
	}
	if back, err := m.Decode(want, nil); err != nil || back["apiVersion"] != "autoscaling/v2beta2" {
		t.Errorf("it comes back as %v: %v", back["apiVersion"], err)
	}
}

// TestVocabulary looks up kinds by the names of the vocabulary.
func TestVocabulary(t *testing.T) {
	for _, c := range []struct {
		names vocabulary.Vocabulary
		kind  schema.GroupVersionKind
		known bool
	}{
		{vocabulary.Platform(), schema.GroupVersionKind{Group: "coordination.platform.io", Version: "v1", Kind: "Lease"}, true},
		{vocabulary.Platform(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, true},
		{vocabulary.Platform(), schema.GroupVersionKind{Group: "meta.platform.io", Version: "v1", Kind: "PartialObjectMetadata"}, true},
		{vocabulary.Platform(), schema.GroupVersionKind{Group: "meta.platform.io", Version: "v1beta1", Kind: "PartialObjectMetadata"}, true},
		{vocabulary.Platform(), schema.GroupVersionKind{Group: "meta.platform.io", Version: "v1", Kind: "Table"}, false},
		{vocabulary.Platform(), schema.GroupVersionKind{Version: "v1", Kind: "Status"}, true},
		{vocabulary.Platform(), schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}, true},
		{vocabulary.K8s(), schema.GroupVersionKind{Group: "coordination.platform.io", Version: "v1", Kind: "Lease"}, false},
		{vocabulary.K8s(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, false},
	} {
		if _, err := protobuf.NewRegistry(c.names).Find(c.kind); (err == nil) != c.known {
			t.Errorf("%s finds %v: %v, want %v", c.names.Name, c.kind, err, c.known)
		}
	}
}

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"}

// TestList compares a list with that of the Kubernetes serializer.
func TestList(t *testing.T) {
	remaining := int64(3)
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more", RemainingItemCount: &remaining}}
	var items []byte
	for _, name := range []string{"a", strings.Repeat("b", 300)} {
		item := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": name}}
		list.Items = append(list.Items, item)
		message, err := item.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		before := len(items)
		items = append(protobuf.AppendItemHead(items, len(message)), message...)
		if size := protobuf.ItemSize(len(message)); size != len(items)-before {
			t.Errorf("an item takes %d bytes, not %d", len(items)-before, size)
		}
	}
	got, err := protobuf.ListHead(configMaps, list.ListMeta, len(items))
	if err != nil {
		t.Fatal(err)
	}
	got = append(append(got, items...), protobuf.Tail...)
	var want bytes.Buffer
	list.SetGroupVersionKind(configMaps)
	if err := original.NewSerializer(nil, nil).Encode(list, &want); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("got\n% x, want\n% x", got, want.Bytes())
	}
}

func TestFrame(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	event := metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: protobuf.AppendEnvelope(nil, kind, []byte("raw"))}}
	want, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got := protobuf.AppendFrame([]byte("before"), "ADDED", kind, []byte("raw"))
	head := []byte{'b', 'e', 'f', 'o', 'r', 'e', 0, 0, 0, byte(len(want))}
	if !bytes.Equal(got, append(head, want...)) {
		t.Errorf("got % x, want % x", got, want)
	}
}

func TestOpenEnvelope(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	e, err := protobuf.OpenEnvelope(protobuf.AppendEnvelope(nil, kind, []byte("raw")))
	if err != nil || e.Kind != kind || string(e.Raw) != "raw" || e.ContentType != "" {
		t.Errorf("%+v %v", e, err)
	}
	for _, bad := range []string{"", "k8s", "k8s\x01", "k8s\x00\x0a\x7f", "k8s\x00\xff", "k8s\x00\x0a\x03\x0a\x01", "{}"} {
		if _, err := protobuf.OpenEnvelope([]byte(bad)); err == nil {
			t.Errorf("%q opens", bad)
		}
	}
}

// FuzzDecode checks that no body panics, and that every decoded object can be encoded and
// decoded again.
func FuzzDecode(f *testing.F) {
	m := find(f, pod)
	seed, err := m.Append(nil, []byte(`{"metadata":{"name":"a","labels":{"k":"v"}},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(protobuf.AppendEnvelope(nil, pod, seed))
	f.Add([]byte("k8s\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := protobuf.OpenEnvelope(body)
		if err != nil {
			return
		}
		object, err := m.Decode(e.Raw, nil)
		if err != nil {
			return
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Append(nil, text); err != nil {
			t.Skip(err) // for example a time that JSON cannot represent
		}
	})
}

var pod = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

func find(tb testing.TB, kind schema.GroupVersionKind) *protobuf.Message {
	tb.Helper()
	m, err := protobuf.NewRegistry(vocabulary.K8s()).Find(kind)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// BenchmarkAppend encodes a pod with all fields set.
func BenchmarkAppend(b *testing.B) {
	m, object := find(b, pod), samples(b)[pod].json
	b.SetBytes(int64(len(object)))
	b.ReportAllocs()
	var message []byte
	var err error
	for b.Loop() {
		if message, err = m.Append(message[:0], object); err != nil {
			b.Fatal(err)
		}
	}
}
