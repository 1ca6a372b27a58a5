// Command store runs the store as its own process, over an etcd cluster.
package main

import (
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/store"
)

func main() {
	run.Main(run.App{
		Name:     "store",
		About:    "stores the state of the API in an etcd cluster",
		Services: []run.Service{store.Service()},
	})
}
