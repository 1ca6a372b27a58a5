// Command authn runs authentication as its own process.
package main

import (
	"github.com/portico-platform/portico/authn"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	run.Main(run.App{
		Name:     "authn",
		About:    "authenticates requests: client certificates, bearer tokens, trusted proxies, anonymous",
		Services: []run.Service{authn.Service()},
	})
}
