// Command watch-hub runs the watch hub as its own process, with the etcd and NATS that
// flags name.
package main

import (
	"github.com/portico-platform/portico/services/kit/run"
	watchhub "github.com/portico-platform/portico/watch-hub"
)

func main() {
	run.Main(run.App{
		Name:     "watch-hub",
		About:    "the watch hub of Portico: publishes what happens to objects, and answers what happened",
		Services: []run.Service{watchhub.Service()},
	})
}
