package sdk_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/admission/sdk/sdktest"
)

// configMap is the part of a ConfigMap that the examples look at. Real services use the types
// of k8s.io/api.
type configMap struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

func print(r sdktest.Result) {
	if r.Err != nil {
		fmt.Println(r.Err.Code, r.Err.Reason, r.Err.Message)
		return
	}
	fmt.Println(string(r.Object))
}

// A whole admission service. In a program, main calls sdk.Main instead of the test's Review.
func Example() {
	service := sdk.Service{
		Name: "owners",
		Mutate: func(_ context.Context, r *sdk.Review) error {
			if !r.Is("", "configmaps") || r.Operation != sdk.Create {
				return nil
			}
			return r.Set(r.User.Name, "metadata", "labels", "created-by")
		},
		Validate: func(_ context.Context, r *sdk.Review) error {
			if !r.Is("", "configmaps") || r.Object == nil {
				return nil
			}
			var c configMap
			if err := r.Decode(&c); err != nil {
				return err
			}
			if len(c.Data) == 0 {
				return r.Forbid("it has no data")
			}
			return nil
		},
	}
	ctx := context.Background()
	caller := sdk.Admission(service, sdk.DefaultOptions())
	print(sdktest.Review(ctx, caller, sdktest.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "1"}}`)))
	print(sdktest.Review(ctx, caller, sdktest.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)))
	// Output:
	// {"apiVersion":"v1","data":{"x":"1"},"kind":"ConfigMap","metadata":{"labels":{"created-by":"jane"},"name":"a"}}
	// 403 Forbidden configmaps "a" is forbidden: it has no data
}

// decide reviews one ConfigMap with a handler.
func decide(mutate, validate sdk.Handler, object string) sdktest.Result {
	caller := sdk.Admission(sdk.Service{Name: "example", Mutate: mutate, Validate: validate}, sdk.DefaultOptions())
	return sdktest.Review(context.Background(), caller, sdktest.Create(object))
}

func ExampleReview_Decode() {
	print(decide(nil, func(_ context.Context, r *sdk.Review) error {
		var c configMap
		if err := r.Decode(&c); err != nil {
			return err
		}
		fmt.Println(c.Metadata.Name, c.Data["color"])
		return nil
	}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: blue}}`))
	// Output:
	// a blue
	// {"apiVersion":"v1","data":{"color":"blue"},"kind":"ConfigMap","metadata":{"name":"a"}}
}

func ExampleReview_Set() {
	print(decide(func(_ context.Context, r *sdk.Review) error {
		if err := r.Set("blue", "data", "color"); err != nil {
			return err
		}
		return r.Set(map[string]any{"name": "b", "uid": "2"}, "metadata", "ownerReferences", 1)
	}, nil, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: [{name: a, uid: "1"}]}, other: {kept: true}}`))
	// Output:
	// {"apiVersion":"v1","data":{"color":"blue"},"kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{"name":"a","uid":"1"},{"name":"b","uid":"2"}]},"other":{"kept":true}}
}

func ExampleReview_Remove() {
	print(decide(func(_ context.Context, r *sdk.Review) error {
		return r.Remove("data", "password")
	}, nil, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: blue, password: sesame}}`))
	// Output:
	// {"apiVersion":"v1","data":{"color":"blue"},"kind":"ConfigMap","metadata":{"name":"a"}}
}

func ExampleDeny() {
	print(decide(nil, func(_ context.Context, _ *sdk.Review) error {
		return sdk.Deny(409, "Conflict", "the maintenance window is open")
	}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`))
	// Output:
	// 409 Conflict the maintenance window is open
}

func ExampleReview_Invalid() {
	r := decide(nil, func(_ context.Context, r *sdk.Review) error {
		return r.Invalid(sdk.InvalidField("data.color", "%q: use a color of the brand", "pink"))
	}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	print(r)
	fmt.Println(r.Err.Details.Causes[0].Field)
	// Output:
	// 422 Invalid ConfigMap "a" is invalid: data.color: Invalid value: "pink": use a color of the brand
	// data.color
}

func ExampleReview_Retry() {
	r := decide(nil, func(_ context.Context, r *sdk.Review) error {
		return r.Retry(5, "another one is being created")
	}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	print(r)
	fmt.Println(r.Err.Details.RetryAfterSeconds)
	// Output:
	// 429 TooManyRequests configmaps "a" is forbidden: another one is being created
	// 5
}

func ExampleReview_Warn() {
	r := decide(nil, func(_ context.Context, r *sdk.Review) error {
		r.Warn("the key %q is deprecated", "color")
		return nil
	}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	fmt.Println(r.Warnings)
	// Output:
	// [the key "color" is deprecated]
}

func ExampleReview_Audit() {
	r := decide(nil, func(_ context.Context, r *sdk.Review) error {
		r.Audit("rule", "colors")
		return nil
	}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	fmt.Println(r.Audit)
	// Output:
	// map[rule:colors]
}

func ExampleReview_Is() {
	print(decide(nil, func(_ context.Context, r *sdk.Review) error {
		fmt.Println(r.Is("", "configmaps"), r.Is("", "configmaps/status"), slices.Contains(r.User.Groups, "system:masters"))
		return nil
	}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`))
	// Output:
	// true false false
	// {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}
}
