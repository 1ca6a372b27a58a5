// Command authz runs authorization as its own process.
package main

import (
	"github.com/portico-platform/portico/authz"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	run.Main(run.App{
		Name:     "authz",
		About:    "authorizes requests by stored roles and bindings (RBAC)",
		Services: []run.Service{authz.Service()},
	})
}
