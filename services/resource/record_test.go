package resource

import (
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
	value := EncodeRecord(sample())
	for b.Loop() {
		if _, err := DecodeRecord(value); err != nil {
			b.Fatal(err)
		}
	}
}
