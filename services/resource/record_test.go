package resource

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/tree"
)

func sample() Record {
	object := []byte("{\"kind\":\"Pod\",\n\"metadata\":{\"name\":\"a\"}}")
	at, _ := tree.MetadataOffset(object)
	return Record{
		UID: "u-1", At: at, JSON: object,
		Labels: map[string]string{"app": "web", "odd": "line\nbreak"},
		Fields: map[string]string{"spec.nodeName": ""},
	}
}

func TestRecordSurvivesTheRoundTrip(t *testing.T) {
	want := sample()
	traced := want
	traced.Trace = []byte("a trace ID and a span ID")
	if got, err := DecodeRecord(EncodeRecord(traced)); err != nil || !reflect.DeepEqual(got, traced) {
		t.Errorf("got %+v, %v; want %+v", got, err, traced)
	}
	value := EncodeRecord(want)
	if strings.Contains(string(value), `"t"`) {
		t.Errorf("a write that was not sampled takes space: %s", value)
	}
	got, err := DecodeRecord(value)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	spliced := string(tree.InsertResourceVersion(got.JSON, got.At, 7))
	if !strings.Contains(spliced, `"metadata":{"resourceVersion":"7","name":"a"}`) {
		t.Errorf("spliced: %s", spliced)
	}
}

// TestLabelsAreShared: records with the same labels share them, and others do not.
func TestLabelsAreShared(t *testing.T) {
	decode := func(app, uid string) Record {
		t.Helper()
		r := sample()
		r.UID, r.Labels, r.Fields = uid, map[string]string{"app": app, "tier": "{},:"}, nil
		got, err := DecodeRecord(EncodeRecord(r))
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v, %v; want %+v", got, err, r)
		}
		return got
	}
	same := func(a, b map[string]string) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	first := decode("web", "u-1")
	if again := decode("web", "u-2"); !same(first.Labels, again.Labels) {
		t.Error("the same labels are not shared")
	}
	if other := decode("db", "u-3"); same(first.Labels, other.Labels) {
		t.Error("other labels are shared")
	}
	long := strings.Repeat("x", maxShared)
	if a, b := decode(long, "u-4"), decode(long, "u-5"); same(a.Labels, b.Labels) {
		t.Error("labels are kept that are longer than the limit")
	}
}

// TestEncodeRecordAllocatesOnce: the value gets its size at once.
func TestEncodeRecordAllocatesOnce(t *testing.T) {
	r := sample()
	r.Write = strings.Repeat("w", maxWrite)
	r.Labels, r.Fields = map[string]string{}, map[string]string{}
	for i := range 15 {
		name := strings.Repeat("n", 40+i)
		r.Labels[name], r.Fields[name] = "a-value", ""
	}
	if n := testing.AllocsPerRun(10, func() { EncodeRecord(r) }); n != 1 {
		t.Errorf("%v allocations", n)
	}
}

func TestDecodeRecordRefusesOtherValues(t *testing.T) {
	for _, value := range []string{
		"", "{}", "no json\n{}", "{\"at\":0}\n{\"metadata\":{}}", "{\"at\":99}\n{}", "{\"at\":-1}\n{}",
	} {
		if r, err := DecodeRecord([]byte(value)); err == nil {
			t.Errorf("%q decodes to %+v", value, r)
		}
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	usual := sample()
	usual.Labels = map[string]string{"app": "web", "tier": "front"}
	value := EncodeRecord(usual)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeRecord(value); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzHeader: the header line is that of encoding/json, which also reads what the scanner does
// not, with the same result.
func FuzzHeader(f *testing.F) {
	f.Add("u", "app", "web", "x", 7, "w")
	f.Add("a\"b", "\n", "é", "<", 0, "")
	f.Fuzz(func(t *testing.T, uid, name, value, field string, at int, write string) {
		h := header{UID: uid, Labels: map[string]string{name: value, "b": field}, Fields: map[string]string{field: uid}, At: at}
		want, _ := json.Marshal(struct {
			header
			written
		}{h, written{write}})
		if got, ok := appendHeader(nil, &h, write); ok && string(got) != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
		agree(t, want)
		agree(t, []byte(uid+name+value))
	})
}

func agree(t *testing.T, line []byte) {
	t.Helper()
	var want header
	wantErr := json.Unmarshal(line, &want)
	got, err := decodeHeader(line)
	if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %v, want %+v, %v", line, got, err, want, wantErr)
	}
}

func TestHeaders(t *testing.T) {
	for _, line := range []string{
		`{"uid":"u","labels":{"a":"b","c":"d"},"fields":{"e":""},"at":12,"w":"x"}`, `{"uid":"u","at":12}`, `{"uid":"u","at":012}`, `{"uid":"u","at":-1}`,
		`{"uid":"u","labels":{},"at":1}`, `{"uid":"u","labels":{"a":"b","a":"c"},"at":1}`, `{"uid":"u","labels":{"a":"b"},"at":1}x`, `{"uid":"u","at":1,"t":"YQ=="}`,
		`{"at":1,"uid":"u"}`, `{"uid":"\u0061","at":1}`, `{"uid":"u`, `{"uid":"u","labels":{"a":"b",`, `{"uid":"u","at":}`, `{"uid":"u","at":99999999999999999999}`, ``, `null`,
	} {
		agree(t, []byte(line))
	}
	usual := EncodeRecord(Record{UID: "u", Labels: map[string]string{"a": "b"}, At: 1, JSON: []byte("{}"), Write: "w"})
	if n := testing.AllocsPerRun(100, func() { _, _ = DecodeRecord(usual) }); n > 3 { // the text, and a map of two parts
		t.Errorf("%v allocations for a usual header", n)
	}
}
