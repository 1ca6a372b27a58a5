package admission_test

import (
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

// BenchmarkMutate is a request that no plugin changes, with some webhooks and admission
// services for other types, of callers in this process and in others.
func BenchmarkMutate(b *testing.B) {
	c := fake.New(b)
	c.Put(b, namespaces, `{metadata: {name: here}, status: {phase: Active}}`)
	for _, name := range []string{"a", "b", "c", "d"} {
		declare(b, c, name, `"endpoint":{"addresses":["127.0.0.1:1"]}`, `"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["pods"]}]`)
		configure(b, c, "validating", name, `{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1"},
			rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: [pods]}]}`)
	}
	a, err := start(b, c)
	if err != nil {
		b.Fatal(err)
	}
	for name, remembers := range map[string]bool{"in this process": false, "from another process": true} {
		b.Run(name, func(b *testing.B) {
			r := create("here")
			r.Operation, r.OldObject, r.Remembers = services.OperationUpdate, r.Object, remembers
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Mutate(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
