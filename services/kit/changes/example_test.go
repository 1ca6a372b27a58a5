package changes_test

import (
	"context"
	"fmt"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// A service that decides by the objects of a type keeps them in a mirror, decoded once, and
// waits for the revision that its answer must include.
func ExampleMirror() {
	cluster, err := fake.Open() // in a service: the run kit's connections to store and hub
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	quotas := resource.GroupResource{Resource: "resourcequotas"}
	mirror := changes.NewMirror(changes.MirrorConfig[int]{
		Source: cluster.Source(), Store: cluster.Store(), GroupResource: quotas,
		Decode: func(o services.Object) (int, error) { return len(o.JSON), nil },
	})
	go func() { _ = mirror.Run(ctx) }()
	<-mirror.Ready()

	created, err := cluster.Store().Create(ctx, services.CreateRequest{
		Key:     resource.Key{GroupResource: quotas, Namespace: "shop", Name: "small"},
		Content: services.Content{JSON: []byte(`{"kind":"ResourceQuota","metadata":{"name":"small"}}`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := mirror.WaitFor(ctx, created.Revision); err != nil {
		fmt.Println(err)
		return
	}
	_, exists := mirror.Get("shop", "small")
	fmt.Println(exists)
	// Output: true
}
