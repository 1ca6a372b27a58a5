package usage_test

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/admission/internal/usage"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestLimited(t *testing.T) {
	limited := []usage.Limited{
		{Resource: "persistentvolumeclaims", MatchContains: []string{".storageclass.storage.platform.io/requests.storage"}},
		{Resource: "pods", MatchScopes: []quota.Scope{{Name: "PriorityClass", Operator: "In", Values: []string{"critical"}}}},
		{APIGroup: "apps", Resource: "deployments", MatchContains: []string{"count/deployments"}},
	}
	const critical = `{"spec":{"priorityClassName":"critical","containers":[{}]}}`
	const claim = `{"spec":{"storageClassName":"gold","resources":{"requests":{"storage":"1Gi"}}}}`
	for name, x := range map[string]struct {
		kind, object, quota, refused string
		code                         int32
	}{
		"a claim of a class":  {"persistentvolumeclaims", claim, "", `insufficient quota to consume: gold.storageclass.storage.platform.io/requests.storage`, 403},
		"a claim of no class": {"persistentvolumeclaims", `{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`, "", "", 0},
		"a claim with a quota": {"persistentvolumeclaims", claim,
			`spec: {hard: {gold.storageclass.storage.platform.io/requests.storage: 2Gi}}, status: {hard: {gold.storageclass.storage.platform.io/requests.storage: 2Gi}, used: {gold.storageclass.storage.platform.io/requests.storage: 0}}`, "", 0},
		"a claim with another quota": {"persistentvolumeclaims", claim, `spec: {hard: {pods: 1}}, status: {hard: {pods: 1}, used: {pods: 0}}`, `insufficient quota to consume`, 403},
		"a critical pod":             {"pods", critical, "", "insufficient quota to match these scopes: [{PriorityClass In [critical]}]", 500},
		"another pod":                {"pods", `{"spec":{"containers":[{}]}}`, "", "", 0},
		"a critical pod with a quota": {"pods", critical,
			`spec: {hard: {pods: 1}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}}, status: {hard: {pods: 1}, used: {pods: 0}}`, "", 0},
		"a critical pod with a quota for others": {"pods", critical,
			`spec: {hard: {pods: 1}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [other]}]}}, status: {hard: {pods: 1}, used: {pods: 0}}`,
			"insufficient quota to match these scopes", 500},
		"a type of that name in another group": {"deployments", `{}`, "", "", 0},
	} {
		c := fake.New(t)
		if x.quota != "" {
			c.Put(t, quotas, `{metadata: {name: q, namespace: here}, `+x.quota+`}`)
		}
		// The mirror knows none of the quotas yet.
		p := usage.New(known(nil), c.Store(), usage.Settings{Counter: quota.NewCounter(vocabulary.Platform()), Limited: limited})
		r := services.AdmissionRequest{Operation: services.OperationCreate, Resource: x.kind, Namespace: "here", Name: "x", Object: []byte(x.object)}
		err := p.Validate(t.Context(), review.New(r))
		s := services.AsStatus(err)
		if x.code == 0 && err != nil || x.code != 0 && (s == nil || s.Code != x.code || !strings.Contains(s.Message, x.refused)) {
			t.Errorf("%s: %+v", name, s)
		}
		r.Operation, r.OldObject = services.OperationUpdate, r.Object
		if err := p.Validate(t.Context(), review.New(r)); err != nil {
			t.Errorf("%s, as before: %v", name, err)
		}
	}
}
