// Command admission runs admission control as its own process.
package main

import (
	"github.com/portico-platform/portico/admission"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	run.Main(run.App{
		Name:     "admission",
		About:    "mutates and validates write requests after they have been authorized",
		Services: []run.Service{admission.Service()},
	})
}
