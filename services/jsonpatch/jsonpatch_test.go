package jsonpatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
)

// doubling returns a patch of n copies, each of which doubles the object.
func doubling(n int) []byte {
	operations := make([]string, n)
	for i := range operations {
		operations[i] = fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/k%d"}`, i)
	}
	return []byte("[" + strings.Join(operations, ",") + "]")
}

func TestCopiesAreBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Apply(t.Context(), []byte(`{"data":{"a":"`+strings.Repeat("x", 1024)+`"}}`), doubling(24))
	runtime.ReadMemStats(&after)
	if !services.IsReason(err, services.ReasonInvalid) {
		t.Errorf("24 doubling copies: got %v, want %s", err, services.ReasonInvalid)
	}
	if held := after.TotalAlloc - before.TotalAlloc; held > 50<<20 {
		t.Errorf("24 doubling copies allocated %d MiB", held>>20)
	}
}

func TestLimits(t *testing.T) {
	nested := strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600)
	for name, x := range map[string]struct{ object, patch, reason string }{
		"too many operations": {`{}`, "[" + strings.Repeat(`{"op":"add","path":"/a","value":1},`, MaxOperations) + `{"op":"add","path":"/a","value":1}]`, services.ReasonRequestEntityTooLarge},
		"too long":            {`{}`, `[{"op":"add","path":"/a","value":"` + strings.Repeat("x", MaxBytes) + `"}]`, services.ReasonRequestEntityTooLarge},
		"too much work":       {`{"b":"` + strings.Repeat("x", 1<<20) + `"}`, "[" + strings.Repeat(`{"op":"test","path":"/c","value":1},`, 2100) + `{"op":"add","path":"/a","value":1}]`, services.ReasonRequestEntityTooLarge},
		"removals from what it adds": {`{}`, `[{"op":"add","path":"/a","value":[0` + strings.Repeat(`,0`, 200_000) + `]}` +
			strings.Repeat(`,{"op":"remove","path":"/a/0"}`, 9_000) + `]`, services.ReasonRequestEntityTooLarge},
		"insertions into what it adds": {`{}`, `[{"op":"add","path":"/a","value":[0` + strings.Repeat(`,0`, 200_000) + `]}` +
			strings.Repeat(`,{"op":"add","path":"/a/+0","value":0}`, 9_000) + `]`, services.ReasonRequestEntityTooLarge},
		"too large a result":  {`{"b":"` + strings.Repeat("x", 2<<20) + `"}`, `[{"op":"add","path":"/a","value":"` + strings.Repeat("x", 2<<20) + `"}]`, services.ReasonRequestEntityTooLarge},
		"too deep a result":   {`{}`, `[{"op":"add","path":"/a","value":` + nested + `}]`, services.ReasonInvalid},
		"no patch":            {`{}`, `{"op":"add"}`, services.ReasonBadRequest},
		"items that are none": {`{}`, `[1]`, services.ReasonBadRequest},
		"unknown operation":   {`{}`, `[{"op":"other","path":"/a"}]`, services.ReasonInvalid},
		"no operation":        {`{}`, `[{"path":"/a"}]`, services.ReasonInvalid},
		"no path":             {`{}`, `[{"op":"add","value":1}]`, services.ReasonInvalid},
		"does not fit":        {`{}`, `[{"op":"remove","path":"/a/b"}]`, services.ReasonInvalid},
	} {
		if _, err := Apply(t.Context(), []byte(x.object), []byte(x.patch)); !services.IsReason(err, x.reason) {
			t.Errorf("%s: got %v, want %s", name, err, x.reason)
		}
	}
}

// TestDecode: a patch is decoded without a look at its operations, and the error is that of the decoder.
// TestManyValues: neither a patch nor the patched object has more values than a body may have, however the patch makes
// them.
func TestManyValues(t *testing.T) {
	many := "[" + strings.Repeat("{},", 260_000) + "{}]"
	half := "[" + strings.Repeat("{},", 160_000) + "{}]"
	for what, c := range map[string]struct{ object, patch string }{
		"value":      {`{}`, `[{"op":"add","path":"/a","value":` + many + `}]`},
		"operations": {`{}`, many},
		"copy":       {`{"a":` + half + `}`, `[{"op":"copy","from":"/a","path":"/b"}]`},
		"both":       {`{"a":` + half + `}`, `[{"op":"add","path":"/b","value":` + half + `}]`},
	} {
		_, err := Apply(t.Context(), []byte(c.object), []byte(c.patch))
		if s := services.AsStatus(err); s == nil || s.Code != http.StatusRequestEntityTooLarge || !strings.Contains(s.Message, "values") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestDecode(t *testing.T) {
	for patch, empty := range map[string]bool{`null`: true, ` [ ] `: true, `[{"op":"other"}]`: false, `[null]`: false} {
		if decoded, err := Decode([]byte(patch)); err != nil || decoded.Empty() != empty {
			t.Errorf("%s: %v, %v", patch, decoded.Empty(), err)
		}
	}
	for patch, want := range map[string]string{`[`: "unexpected end of JSON input", `{}`: "json: cannot unmarshal object into Go value of type jsonpatch.Patch"} {
		if _, err := Decode([]byte(patch)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", patch, err)
		}
	}
	if _, err := Decode([]byte(strings.Repeat(" ", MaxBytes+1))); !services.IsReason(err, services.ReasonRequestEntityTooLarge) {
		t.Errorf("too long: %v", err)
	}
}

func TestPatchesInBatchesLikeAtOnce(t *testing.T) {
	// The object is so large that its patch is applied in batches of 64 operations.
	object := []byte(`{"list":[],"b":"` + strings.Repeat("x", 2<<20) + `"}`)
	patch := "["
	for i := range 200 {
		patch += fmt.Sprintf(`{"op":"add","path":"/list/-","value":%d},`, i)
	}
	patched, err := Apply(t.Context(), object, []byte(patch+`{"op":"remove","path":"/b"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(patched), ","); got != 199 {
		t.Errorf("%d commas in %s, want 199", got, patched)
	}
}

func TestStopsWhenTheClientLeaves(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var status *services.Status
	if _, err := Apply(ctx, []byte(`{}`), []byte(`[{"op":"add","path":"/a","value":1}]`)); !errors.As(err, &status) {
		t.Errorf("got %v, want a Status", err)
	}
}

// TestReplaceMissing: a replace operation sets a field that an object lacks, and no item that
// a list lacks.
func TestReplaceMissing(t *testing.T) {
	for patch, want := range map[string]string{
		`[{"op":"replace","path":"/a","value":1}]`:                                         `{"a":1,"l":[1]}`,
		`[{"op":"add","path":"/","value":{"b":[]}},{"op":"add","path":"//b/-","value":1}]`: `{"":{"b":[1]},"l":[1]}`, // a member without a name
		`[{"op":"replace","path":"/l/0","value":2}]`:                                       `{"l":[2]}`,
		`[{"op":"replace","path":"/l/1","value":2}]`:                                       "",
		`[{"op":"replace","path":"/l/-","value":2}]`:                                       "",
		`[{"op":"replace","path":"/none/a","value":1}]`:                                    "",
		`[{"op":"replace","path":"","value":{"b":true}}]`:                                  `{"b":true}`,
	} {
		got, err := Apply(t.Context(), []byte(`{"l":[1]}`), []byte(patch))
		if string(got) != want || (err == nil) == (want == "") {
			t.Errorf("%s: got %s, %v, want %s", patch, got, err, want)
		}
	}
}

// TestLongPatches: patches of as many operations as may be are applied, where they are cheap.
func TestLongPatches(t *testing.T) {
	commas := `"` + strings.Repeat("a,\\\"", 30_000) + `"`
	for name, c := range map[string]struct{ object, first, each string }{
		"new fields":             {`{}`, `{"op":"add","path":"/a","value":{}}`, `{"op":"add","path":"/a/b%d","value":"` + strings.Repeat("x", 100) + `"}`},
		"new items":              {`{"a":[]}`, `{"op":"test","path":"/a","value":[]}`, `{"op":"add","path":"/a/-","value":"` + strings.Repeat("x", 100) + `"}`},
		"new first items":        {`{"a":[]}`, `{"op":"test","path":"/a","value":[]}`, `{"op":"add","path":"/a/0","value":"` + strings.Repeat("x", 100) + `"}`},
		"changes of items":       {`{"a":[]}`, `{"op":"add","path":"/a","value":[0` + strings.Repeat(",0", 100_000) + `]}`, `{"op":"replace","path":"/a/%d","value":1}`},
		"items beside long text": {`{"a":[],"b":` + commas + `}`, `{"op":"add","path":"/a/0","value":0}`, `{"op":"replace","path":"/a/0","value":1}`},
	} {
		operations := []string{c.first}
		for i := range MaxOperations - 1 {
			operations = append(operations, strings.ReplaceAll(c.each, "%d", strconv.Itoa(i)))
		}
		if _, err := Apply(t.Context(), []byte(c.object), []byte("["+strings.Join(operations, ",")+"]")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
