// Command authz runs authorization as its own process.
package main

import (
	"github.com/portico-platform/portico/authz"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	run.Main(run.App{
		Name:     "authz",
		About:    "authorizes requests: by roles and bindings, nodes, a remote service or a file",
		Services: []run.Service{authz.Service()},
	})
}
