package admission_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
)

// conditioned returns the field matchConditions of a webhook.
func conditioned(sources ...string) string {
	var list []string
	for i, source := range sources {
		list = append(list, fmt.Sprintf("{name: c%d, expression: %q}", i, source))
	}
	return "matchConditions: [" + strings.Join(list, ", ") + "]"
}

// A webhook is called if all of its conditions are true, for the object that earlier
// plugins and webhooks have left.
func TestMatchConditions(t *testing.T) {
	c, s := cluster(t), serve(t)
	s.on("labels", patching(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`))
	const labelled = `has(object.metadata.labels) && object.metadata.labels['a'] == 'b'`
	configure(t, c, "mutating", "all", s.hook("before", conditioned(labelled)), s.hook("labels", conditioned("request.name == 'c'", "oldObject == null")),
		s.hook("after", conditioned(labelled)), s.hook("never", conditioned("true", "request.operation == 'DELETE'")))
	configure(t, c, "validating", "all", s.hook("ann", conditioned("request.userInfo.username == 'ann'")),
		s.hook("allowed", conditioned("authorizer.requestResource.check('delete').allowed()")))
	a := started(t, c)
	if _, err := a.Mutate(t.Context(), create("here")); err != nil {
		t.Fatal(err)
	}
	if called := s.calls(); !slices.Equal(called, []string{"labels", "after"}) {
		t.Errorf("called %q", called)
	}
	r := create("here")
	for user, want := range map[string][]string{"bob": nil, "ann": {"ann"}, "deleter": {"allowed"}} {
		r.User.Name = user
		if _, err := a.Validate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if called := s.calls(); !slices.Equal(called, want) {
			t.Errorf("called %q for %s", called, user)
		}
	}
}

// A condition that fails refuses the request, or skips the webhook if its failure policy is
// Ignore. One that is false decides first.
func TestMatchConditionsThatFail(t *testing.T) {
	for name, x := range map[string]struct{ condition, message string }{
		"a missing field": {"object.spec.a == 1", "no such key: spec"},
		"no expression":   {"object.", "compilation failed"},
		"too expensive":   {"[1,2,3,4,5,6,7,8,9,10].all(a, authorizer.group(string(a)).resource('x').check('get').allowed() || true)", "cost limit exceeded"},
	} {
		c, s := cluster(t), serve(t)
		configure(t, c, "validating", "false", s.hook("false", conditioned(x.condition, "false")))
		configure(t, c, "validating", "open", s.hook("open", conditioned(x.condition), "failurePolicy: Ignore"))
		if _, err := started(t, c).Validate(t.Context(), create("here")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		configure(t, c, "validating", "closed", s.hook("closed", conditioned("true", x.condition)))
		_, err := started(t, c).Validate(t.Context(), create("here"))
		refusal := services.AsStatus(err)
		if refusal == nil || refusal.Code != http.StatusForbidden || !strings.Contains(refusal.Message, `configmaps "c" is forbidden: `) || !strings.Contains(refusal.Message, x.message) {
			t.Errorf("%s: %+v", name, refusal)
		}
		if called := s.calls(); called != nil {
			t.Errorf("%s: called %q", name, called)
		}
	}
}
