// Command watch-hub runs the watch hub as its own process, with the etcd and NATS of its
// flags.
package main

import (
	"github.com/portico-platform/portico/services/kit/run"
	watchhub "github.com/portico-platform/portico/watch-hub"
)

func main() {
	run.Main(run.App{
		Name:     "watch-hub",
		About:    "publishes changes of objects on NATS and replays them",
		Services: []run.Service{watchhub.Service()},
	})
}
