// Command authz runs authorization as its own process.
package main

import (
	"github.com/portico-platform/portico/authz"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	run.Main(run.App{
		Name:     "authz",
		About:    "decides what users may do, by the roles and bindings that are stored",
		Services: []run.Service{authz.Service()},
	})
}
