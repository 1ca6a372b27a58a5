// Command lifecycle runs the lifecycle controllers as their own process.
package main

import (
	"github.com/portico-platform/portico/lifecycle"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	run.Main(run.App{
		Name:     "lifecycle",
		About:    "empties deleted namespaces, collects garbage, adds defaults to new namespaces",
		Services: []run.Service{lifecycle.Service()},
	})
}
