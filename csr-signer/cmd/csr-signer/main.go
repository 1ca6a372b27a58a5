// Command csr-signer runs the certificate signer as its own process.
package main

import (
	csrsigner "github.com/portico-platform/portico/csr-signer"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	run.Main(run.App{
		Name:     "csr-signer",
		About:    "issues certificates for certificate signing requests",
		Services: []run.Service{csrsigner.Service()},
	})
}
