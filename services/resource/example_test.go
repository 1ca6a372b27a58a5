package resource_test

import (
	"fmt"

	"github.com/portico-platform/portico/services/resource"
)

// An object has one path, from which its key can be parsed.
func ExampleParsePath() {
	key := resource.Key{GroupResource: resource.GroupResource{Group: "apps", Resource: "deployments"}, Namespace: "shop", Name: "web"}
	again, err := resource.ParsePath(key.Path())
	fmt.Println(again == key, err)
	// Output: true <nil>
}

// A selector matches labels and the selectable fields of a type.
func ExampleSelector_Matches() {
	s, err := resource.ParseSelector("app in (web,api)", "metadata.namespace=shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "pods"}, Namespace: "shop", Name: "web-1"}
	fmt.Println(s.Matches(key, map[string]string{"app": "web"}, nil))
	fmt.Println(s.Matches(key, map[string]string{"app": "db"}, nil))
	// Output:
	// true
	// false
}
