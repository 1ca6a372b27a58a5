package admission_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
)

// Each subtest sends its patch to a new service, so no limit depends on an earlier
// request.
func TestWebhookPatchesAreBounded(t *testing.T) {
	doubling := make([]string, 24)
	for i := range doubling {
		doubling[i] = fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/k%d"}`, i)
	}
	many := "[" + strings.Repeat(`{"op":"add","path":"/data/x","value":"1"},`, 10000) + `{"op":"add","path":"/data/x","value":"1"}]`
	deep := `[{"op":"add","path":"/data/x","value":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}]`
	large := `[{"op":"add","path":"/data/x","value":"` + strings.Repeat("x", 4<<20) + `"}]`
	for name, patch := range map[string]string{
		"copies": `[{"op":"add","path":"/data","value":{"a":"` + strings.Repeat("x", 1024) + `"}},` + strings.Join(doubling, ",") + `]`,
		"many":   many, "deep": deep, "large": large,
	} {
		t.Run(name, func(t *testing.T) {
			c, s := cluster(t), serve(t)
			s.on("bomb", patching(patch))
			configure(t, c, "mutating", "a", s.hook("bomb"))
			a := started(t, c)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := a.Mutate(t.Context(), create("here"))
			runtime.ReadMemStats(&after)
			if !services.IsReason(err, services.ReasonInternalError) {
				t.Errorf("got %v, want %s", err, services.ReasonInternalError)
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
			if held := after.TotalAlloc - before.TotalAlloc; held > 100<<20 { // the response itself is copied a few times
				t.Errorf("it allocated %d MiB", held>>20)
			}
		})
	}
}

// TestWebhookAnswersAreBounded: an answer with many values is not decoded, and nothing long of it reaches clients or the
// audit log.
func TestWebhookAnswersAreBounded(t *testing.T) {
	for _, kind := range []string{"mutating", "validating"} {
		c, s := cluster(t), serve(t)
		s.on("causes", `"allowed":false,"status":{"details":{"causes":[`+strings.Repeat("{},", 2_500_000)+`{}]}}`)
		s.on("texts", `"allowed":false,"status":{"message":"`+strings.Repeat("m", 1<<20)+`","reason":"`+strings.Repeat("r", 1<<20)+`","details":{"name":"`+strings.Repeat("n", 1<<20)+
			`","causes":[`+strings.Repeat(`{"message":"`+strings.Repeat("c", 10_000)+`"},`, 150)+`{}]}}`)
		s.on("notes", `"allowed":true,"auditAnnotations":{"a":"`+strings.Repeat("a", 6<<20)+`"`+strings.Repeat(`,"b":"b"`, 100)+`}`)
		ask := func(hook string) (services.AdmissionResponse, error) {
			configure(t, c, kind, "c", s.hook(hook, "failurePolicy: Fail"))
			a := started(t, c)
			if kind == "mutating" {
				return a.Mutate(t.Context(), create("here"))
			}
			return a.Validate(t.Context(), create("here"))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ask("causes")
		runtime.ReadMemStats(&after)
		if !services.IsReason(err, services.ReasonInternalError) || !strings.Contains(err.Error(), "values") {
			t.Errorf("%s, causes: %v", kind, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
			t.Errorf("%s: %d MiB were allocated", kind, took>>20)
		}
		_, err = ask("texts")
		refusal := services.AsStatus(err)
		text, _ := json.Marshal(refusal)
		if refusal == nil || len(refusal.Details.Causes) != 100 || len(text) > 1<<20 {
			t.Errorf("%s: a refusal of %d bytes", kind, len(text))
		}
		got, err := ask("notes")
		if total := len(fmt.Sprint(got.AuditAnnotations)); err != nil || total < 1000 || total > 64<<10 {
			t.Errorf("%s: %d bytes of annotations, %v", kind, total, err)
		}
	}
}

func TestWebhookWarningsAreBounded(t *testing.T) {
	c, s := cluster(t), serve(t)
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = fmt.Sprintf(`"%d %s"`, i, strings.Repeat("x", 1000))
	}
	s.on("talker", `"allowed":true,"warnings":[`+strings.Join(texts, ",")+`]`)
	configure(t, c, "mutating", "a", s.hook("talker"))
	got, err := started(t, c).Mutate(t.Context(), create("here"))
	if total := len(strings.Join(got.Warnings, "")); err != nil || total == 0 || total > 64<<10 {
		t.Errorf("%d bytes of warnings, %v", total, err)
	}
}
