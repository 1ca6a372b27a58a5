package protobuf

import (
	"bytes"
	stdjson "encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portico-platform/portico/services/vocabulary"
)

// everything returns the messages of all published kinds, in a fixed order.
// CustomResourceDefinitions have no plan, because parts of schemas have their own JSON
// encoding.
func everything(tb testing.TB) []*Message {
	tb.Helper()
	r := NewRegistry(vocabulary.K8s())
	var all []*Message
	for kind := range r.types.AllKnownTypes() {
		if m, err := r.Find(kind); err == nil && kind.Version != runtime.APIVersionInternal && !strings.HasPrefix(kind.Kind, definitionKind) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *Message) int { return strings.Compare(a.Kind.String(), b.Kind.String()) })
	return all
}

// TestEveryKindHasPlan: no kind needs the slow path for lack of a plan.
func TestEveryKindHasPlan(t *testing.T) {
	for _, m := range everything(t) {
		if m.plan == nil {
			_, err := compiler{}.plan(m.goType)
			t.Errorf("%s has no plan: %v", m.Kind, err)
		}
	}
}

// agree compares a transcoded message with the one of the generated code, and
// reports whether there was one to compare.
func agree(tb testing.TB, m *Message, object []byte) bool {
	tb.Helper()
	got, ok := (&transcoder{}).transcode(nil, m.plan, object)
	if !ok {
		return false
	}
	want, err := m.encode(object)
	if err != nil {
		tb.Errorf("%s: %s is transcoded, but %v", m.Kind, object, err)
	} else if !bytes.Equal(got, want) {
		tb.Errorf("%s: %s is transcoded to\n%x, want\n%x", m.Kind, object, got, want)
	}
	return true
}

// TestGenerated transcodes random objects of every kind, as encoded from their Go types and
// from maps: with other orders, unknown fields and nulls.
func TestGenerated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, m := range everything(t) {
		for range 30 {
			object := reflect.New(m.goType)
			fill(random, object.Elem(), 12)
			text, err := stdjson.Marshal(object.Interface())
			if err != nil {
				t.Fatal(m.Kind, err)
			}
			var loose any
			if err := stdjson.Unmarshal(text, &loose); err != nil {
				t.Fatal(m.Kind, err)
			}
			disturb(random, loose)
			disturbed, err := stdjson.Marshal(loose)
			if err != nil {
				t.Fatal(m.Kind, err)
			}
			if !agree(t, m, text) {
				t.Errorf("%s: %s is not transcoded", m.Kind, text)
			}
			agree(t, m, disturbed)
			agree(t, m, shuffled(random, loose))
			if t.Failed() {
				return
			}
		}
	}
}

var strange = []string{"", "a", "plain text", "ünï ☃ 𝄞", "with \"quotes\" and \\ and \n\t\r\b\f", "<html> & \u2028", "\x00\x1f\x7f", strings.Repeat("long ", 40)}

var amounts = []string{"0", "1", "250m", "128Mi", "1000m", "1500m", "1024Ki", "1000", "3e3", "0.5", "12345678k", "1Ei", "-3", "0Mi", "16384256Ki", "5n"}

// fill sets about half of all fields.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch x := v.Addr().Interface().(type) {
	case *metav1.Time:
		*x = metav1.Unix(r.Int64N(1<<33)-1<<32, 0)
		return
	case *metav1.MicroTime:
		*x = metav1.NewMicroTime(time.Unix(r.Int64N(1<<32), r.Int64N(1e6)*1000))
		return
	case *resource.Quantity:
		*x = resource.MustParse(amounts[r.IntN(len(amounts))])
		return
	case *intstr.IntOrString:
		*x = intstr.FromInt32(r.Int32())
		if r.IntN(2) == 0 {
			*x = intstr.FromString(strange[r.IntN(len(strange))])
		}
		return
	case *runtime.RawExtension:
		x.Raw = []byte(`{"b":[1,{"c":"}\""}],"a":null}`)
		return
	case *metav1.FieldsV1:
		x.SetRawBytes([]byte(`{"f:spec":{"k:{\"name\":\"a\"}":{".":{}}}}`))
		return
	}
	if depth == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem(), depth-1)
	case reflect.Struct:
		for i := range v.NumField() {
			if r.IntN(2) == 0 && v.Field(i).CanSet() {
				fill(r, v.Field(i), depth-1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(r, v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(4) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString([]string{"a", "b.c/d", "limits.cpu", "é", "zz"}[r.IntN(5)])
			fill(r, value, depth-1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(strange[r.IntN(len(strange))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> (32 + r.IntN(32)))
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(256)))
	}
}

// disturb replaces values by nulls and by values of other types, and adds unknown fields.
func disturb(r *rand.Rand, v any) {
	others := []any{nil, nil, nil, map[string]any{}, []any{}, "text", 1.5, true}
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			disturb(r, value)
			if r.IntN(20) == 0 {
				x[key] = others[r.IntN(len(others))]
			}
		}
		x["unknown"] = map[string]any{"a": []any{"]"}}
	case []any:
		for i := range x {
			disturb(r, x[i])
			if r.IntN(20) == 0 {
				x[i] = nil
			}
		}
	}
}

// shuffled returns JSON with members in any order, some twice, and with spaces.
func shuffled(r *rand.Rand, v any) []byte {
	var out []byte
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x { // the order is random
			name, _ := stdjson.Marshal(key)
			out = append(append(out, name...), " : "...)
			out = append(append(out, shuffled(r, value)...), ",\n"...)
			if r.IntN(300) == 0 {
				out = append(append(append(out, name...), ':'), append(shuffled(r, value), ',')...)
			}
		}
		return append(append([]byte("{ "), bytes.TrimRight(out, ",\n")...), " }"...)
	case []any:
		for _, item := range x {
			out = append(append(out, shuffled(r, item)...), " , "...)
		}
		return append(append([]byte("[ "), bytes.TrimRight(out, ", ")...), " ]"...)
	}
	out, _ = stdjson.Marshal(v)
	return out
}

// TestValues transcodes variants of leaf values.
func TestValues(t *testing.T) {
	r := NewRegistry(vocabulary.K8s())
	find := func(group, version, kind string) *Message {
		m, err := r.Find(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	pod, secret, lease := find("", "v1", "Pod"), find("", "v1", "Secret"), find("coordination.k8s.io", "v1", "Lease")
	service, review := find("", "v1", "Service"), find("authentication.k8s.io", "v1", "TokenReview")
	for form, values := range map[string][]string{
		`{"spec":{"overhead":{"cpu":%}}}`: append([]string{`1`, `1.5`, `"1e3"`, `" 1 "`, `""`, `"x"`, `null`, `"01"`, `"100000000000000000000"`, `"9999999999Gi"`, `"+1"`, `"1\u0030"`}, quoted(amounts)...),
		`{"metadata":{"creationTimestamp":%}}`: {`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.999Z"`, `"2026-01-02T03:04:05+02:00"`,
			`"0001-01-01T00:00:00Z"`, `"2026-01-02T3:04:05Z"`, `"2026-01-02T03:04:05,5Z"`, `"2026-13-02T03:04:05Z"`, `null`, `5`, `""`, `"2026-01-02T03:04:05\u005a"`},
		`{"metadata":{"generation":%}}`:            {`0`, `-0`, `9223372036854775807`, `9223372036854775808`, `1.0`, `1e3`, `"1"`, `null`, `true`, `-7`},
		`{"spec":{"priority":%}}`:                  {`0`, `2147483647`, `2147483648`, `-2147483648`, `null`},
		`{"spec":{"hostNetwork":%}}`:               {`true`, `false`, `null`, `"true"`, `1`},
		`{"spec":{"hostPID":true,%:false}}`:        {`"hostPID"`, `"host\u0050ID"`, `"HostPID"`, `"other"`},
		`{"metadata":{"labels":%}}`:                {`{"b":"1","a":"2"}`, `{"a":"1","a":"2"}`, `{"a":null}`, `{}`, `null`, `[]`, `{"\u0061":"1"}`, `{"a":1}`},
		`{"metadata":{"finalizers":%}}`:            {`["a",null]`, `[]`, `null`, `{}`, `"a"`, `[1]`},
		`{"metadata":{"name":%}}`:                  {`"\ud834\udd1e"`, `"\ud834"`, "\"\xff\"", `"\/"`, `null`, `1`, "\"a\\nb\xff\""},
		`{"metadata":{"managedFields":[%]}}`:       {`{"fieldsV1":null}`, `{"fieldsV1":{ "a" : {} }}`, `null`, `{"fieldsV1":"x"}`},
		`{"spec":{"volumes":[{"name":"a",%}]}}`:    {`"emptyDir":{}`, `"emptyDir":null`, `"secret":{"secretName":"s","defaultMode":420}`},
		`{"spec":{"containers":[{"env":[{%}]}]}}`:  {`"valueFrom":{"configMapKeyRef":{"name":"n","key":"k"}}`, `"valueFrom":{}`},
		`{"spec":{"containers":[{"image":%},{}]}}`: {`"a"`, `null`},
	} {
		for _, value := range values {
			agree(t, pod, []byte(strings.Replace(form, "%", value, 1)))
		}
	}
	for _, value := range []string{`"aGk="`, `""`, `null`, `"aGk"`, `"a\nGk="`, `[104,105]`, `"aGk=\r\n"`, `"\u0061Gk="`} {
		agree(t, secret, []byte(`{"data":{"k":`+value+`}}`))
	}
	for _, value := range []string{`"2026-01-02T03:04:05.678901Z"`, `"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.6789012Z"`, `"2026-01-02T03:04:05.678901+01:00"`, `"0001-01-01T00:00:00.000000Z"`, `null`} {
		agree(t, lease, []byte(`{"spec":{"renewTime":`+value+`}}`))
	}
	for _, value := range []string{`80`, `"http"`, `null`, `""`, `1.5`, `3000000000`, `true`, `"\u0061"`} {
		agree(t, service, []byte(`{"spec":{"ports":[{"port":1,"targetPort":`+value+`}]}}`))
	}
	for _, value := range []string{`["a","b"]`, `[]`, `null`, `[null]`, `"a"`} {
		agree(t, review, []byte(`{"status":{"user":{"extra":{"k":`+value+`}}}}`))
	}
}

func quoted(texts []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, `"`+text+`"`)
	}
	return out
}

// TestCanonical compares canonical with the published quantity type.
func TestCanonical(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	suffixes := []string{"", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "n", "u", "E", "e3", ".5", "x"}
	for range 20_000 {
		text := strconv.FormatUint(random.Uint64N(1<<(1+random.IntN(40))), 10) + suffixes[random.IntN(len(suffixes))]
		if !canonical([]byte(text)) {
			continue
		}
		if q, err := resource.ParseQuantity(text); err != nil || q.String() != text {
			t.Errorf("%s is %s, %v", text, q.String(), err)
		}
	}
}

// FuzzTranscode compares the fast and the slow path for arbitrary valid JSON.
func FuzzTranscode(f *testing.F) {
	all := everything(f)
	random := rand.New(rand.NewPCG(5, 6))
	for i, m := range all {
		object := reflect.New(m.goType)
		fill(random, object.Elem(), 10)
		text, err := stdjson.Marshal(object.Interface())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(i), text)
	}
	f.Add(uint16(0), []byte(`{"metadata":{"name":"a`))
	f.Add(uint16(18), []byte(`{"metadata":{},"items":[{"b":[1,{"c":"}\"\"\],"a":null}]}`))
	f.Fuzz(func(t *testing.T, i uint16, object []byte) {
		m := all[int(i)%len(all)]
		if stdjson.Valid(object) {
			agree(t, m, object)
		} else {
			(&transcoder{}).transcode(nil, m.plan, object) // must terminate
		}
	})
}
