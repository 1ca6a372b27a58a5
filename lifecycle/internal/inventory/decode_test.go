package inventory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// managed returns about 5 KiB of managedFields, with strings that look like JSON.
func managed() string {
	var b strings.Builder
	b.WriteString(`[{"manager":"a \"]\" [ \\","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{`)
	for i := range 64 {
		fmt.Fprintf(&b, `"k:{\"name\":\"container-%d\"}":{".":{},"f:image":{},"f:ports":{".":{},"k[]":{}}},`, i)
	}
	return b.String() + `"f:end":{}}}}]`
}

const (
	object = `{"kind":"PartialObjectMetadata","apiVersion":"meta.platform/v1","metadata":{"annotations":{"last":"{\"managedFields\":[}"},` +
		`"labels":{"app":"web"},"managedFields":%s,"name":"web-1","namespace":"here","uid":"u-1","resourceVersion":"7",` +
		`"creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"2026-01-02T03:04:06Z","finalizers":["foregroundDeletion"],` +
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u-0","controller":true,"blockOwnerDeletion":true}]}}`
	event = `{"type":"MODIFIED","object":` + object + "}\n"
)

// decoded returns the object as the standard types decode it, reduced to the fields of
// linkMetadata.
func decoded(t *testing.T) metav1.PartialObjectMetadata {
	t.Helper()
	var whole metav1.PartialObjectMetadata
	if err := json.Unmarshal(fmt.Appendf(nil, object, managed()), &whole); err != nil {
		t.Fatal(err)
	}
	whole.TypeMeta, whole.Labels, whole.Annotations, whole.ManagedFields, whole.CreationTimestamp = metav1.TypeMeta{}, nil, nil, nil, metav1.Time{}
	return whole
}

func TestDecodeEvent(t *testing.T) {
	want := decoded(t)
	for _, fields := range []string{managed(), "[]", "null", `[{}]`, `[ ]`} {
		kind, got, err := decodeEvent(fmt.Appendf(nil, event, fields))
		if err != nil || kind != watch.Modified || !reflect.DeepEqual(got, &want) {
			t.Errorf("with %.20s: %s %+v, %v", fields, kind, got, err)
		}
	}
	for _, malformed := range []string{"", "{", `{"type":"ADDED","object":{"metadata":{"managedFields":["x`, fmt.Sprintf(event, "[")} {
		if _, got, err := decodeEvent([]byte(malformed)); err == nil {
			t.Errorf("%q was taken for %v", malformed, got)
		}
	}
}

func TestDecodeError(t *testing.T) {
	kind, status, err := decodeEvent([]byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}}`))
	if err != nil || kind != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(status)) {
		t.Errorf("%s %v, %v", kind, status, err)
	}
}

func TestDecodeList(t *testing.T) {
	want := decoded(t)
	one := fmt.Sprintf(object, managed())
	list, err := decodeList(fmt.Appendf(nil, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"9","continue":"more"},"items":[%s,%s]}`, one, one))
	if err != nil || list.ResourceVersion != "9" || list.Continue != "more" || !reflect.DeepEqual(list.Items, []metav1.PartialObjectMetadata{want, want}) {
		t.Errorf("%+v, %v", list, err)
	}
}

// FuzzWithoutManagedFields: valid JSON stays valid and has the same meaning except for
// managedFields.
func FuzzWithoutManagedFields(f *testing.F) {
	f.Add(fmt.Appendf(nil, event, managed()))
	f.Add([]byte(`{"managedFields":[1,[2,"\\"]],"a":["managedFields"],"managedFields":[["\"]"]] }`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var before, after any
		valid := json.Unmarshal(text, &before) == nil
		if err := json.Unmarshal(withoutManagedFields(bytes.Clone(text)), &after); valid && err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if valid && !reflect.DeepEqual(drop(before), drop(after)) {
			t.Errorf("%q: %v became %v", text, before, after)
		}
	})
}

// drop removes managedFields everywhere.
func drop(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, each := range v {
			if drop(each); strings.HasSuffix(key, "managedFields") {
				delete(v, key)
			}
		}
	case []any:
		for _, each := range v {
			drop(each)
		}
	}
	return value
}

// BenchmarkDecodeEvent measures the cost of one watch event, compared to client-go's
// dynamic client.
func BenchmarkDecodeEvent(b *testing.B) {
	line := fmt.Appendf(nil, event, managed())
	for name, decode := range map[string]func([]byte) error{"own": ownWay, "stock": stockWay} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(bytes.Clone(line)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ownWay(line []byte) error {
	_, _, err := decodeEvent(line)
	return err
}

func stockWay(line []byte) error {
	var frame json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(line)).Decode(&frame); err != nil {
		return err
	}
	var event metav1.WatchEvent
	if err := json.Unmarshal(frame, &event); err != nil {
		return err
	}
	_, err := runtime.Decode(unstructured.UnstructuredJSONScheme, event.Object.Raw)
	return err
}
