package cel_test

import (
	"context"
	"fmt"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
)

// Conditions are evaluated for a request. An error is up to the failure policy.
func ExampleEngine_Match() {
	engine, err := cel.New(cel.Config{Release: "1.36"})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := engine.Request(services.AdmissionRequest{
		Operation: services.OperationCreate, Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "a",
		User:   services.UserInfo{Name: "ann"},
		Object: []byte(`{"metadata":{"name":"a","labels":{"tier":"web"}},"spec":{"replicas":3}}`),
	})
	for _, source := range []string{
		`object.metadata.labels.tier == 'web' && request.userInfo.username == 'ann'`,
		`object.spec.replicas > 5`,
		`object.spec.missing == 'a'`,
	} {
		matches, err := engine.Match(context.Background(), []cel.MatchCondition{{Name: "only", Expression: source}}, request)
		fmt.Println(matches, err)
	}
	fmt.Println(engine.CheckMatch(`1 + 1`))
	// Output:
	// true <nil>
	// false <nil>
	// false expression 'object.spec.missing == 'a'' resulted in error: no such key: missing
	// must evaluate to bool but got int
}
