// Command frontdoor runs the front door as its own process.
package main

import (
	"github.com/portico-platform/portico/frontdoor"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	run.Main(run.App{
		Name:     "frontdoor",
		About:    "serves the API over HTTPS: the service that clients talk to",
		Services: []run.Service{frontdoor.Service()},
	})
}
