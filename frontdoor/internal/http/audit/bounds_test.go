package audit

import (
	"encoding/json"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/apis/audit"
	evaluate "k8s.io/apiserver/pkg/audit"

	"github.com/portico-platform/portico/services"
)

// TestLongEvents: whatever is long, of the client, of its identity, of a webhook or in bodies, there is a line, which
// fits into the smallest file and says who did what.
func TestLongEvents(t *testing.T) {
	long, many := strings.Repeat("<", 900<<10), make([]string, 20_000)
	for i := range many {
		many[i] = strings.Repeat("g", 100)
	}
	rule := &Rule{evaluate.RequestAuditConfig{Level: audit.LevelRequestResponse}}
	for what, change := range map[string]func(*Outcome){
		"name":         func(o *Outcome) { o.Caller.Name = long },
		"groups":       func(o *Outcome) { o.Caller.Groups = many },
		"extra":        func(o *Outcome) { o.Caller.Extra = map[string][]string{"a": many} },
		"impersonated": func(o *Outcome) { o.Impersonated = &services.UserInfo{Name: long, Groups: many} },
		"message":      func(o *Outcome) { o.Failure = services.BadRequest("%s", long) },
		"annotations": func(o *Outcome) {
			for i := range 100 {
				o.Record.Note("hook/"+strconv.Itoa(i), long)
			}
		},
		"bodies": func(o *Outcome) {
			o.Bodies.Request, _ = json.Marshal(strings.Repeat("<", 200<<10))
			o.Bodies.Response = o.Bodies.Request
		},
		"everything": func(o *Outcome) {
			o.Caller = services.UserInfo{Name: long, UID: long, Groups: many, Extra: map[string][]string{long: many}}
			o.Impersonated, o.Failure = &o.Caller, services.BadRequest("%s", long)
			o.Bodies.Request, _ = json.Marshal(strings.Repeat("<", 200<<10))
			for i := range 100 {
				o.Record.Note(long+strconv.Itoa(i), long)
			}
		},
	} {
		var line strings.Builder
		o := Outcome{Stage: ResponseComplete, Record: &Record{ID: "id", Rule: rule}, Verb: "create", Caller: services.UserInfo{Name: "<caller"},
			Request: httptest.NewRequest("POST", "/api/v1/namespaces/a/pods", nil), Status: 400, Object: &ObjectRef{Resource: "pods", Namespace: "a", APIVersion: "v1"}}
		change(&o)
		NewLog(&line, "audit/v1").Write(o)
		var event struct {
			AuditID, Verb  string
			User           struct{ Username string }
			ResponseStatus struct{ Code int }
			ObjectRef      struct{ Namespace string }
		}
		if err := json.Unmarshal([]byte(line.String()), &event); err != nil || line.Len() > 1000<<10 || event.AuditID != "id" || event.Verb != "create" ||
			!strings.HasPrefix(event.User.Username, "<") || event.ResponseStatus.Code != 400 || event.ObjectRef.Namespace != "a" {
			t.Errorf("%s: %d bytes, %.300s, error %v", what, line.Len(), line.String(), err)
		}
	}
}
