// Command store runs the store as its own process, over an etcd cluster.
package main

import (
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/store"
)

func main() {
	run.Main(run.App{
		Name:     "store",
		About:    "keeps the state of the API in an etcd cluster and serves it to the other services",
		Services: []run.Service{store.Service()},
	})
}
