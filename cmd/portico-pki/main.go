// Command portico-pki is `portico pki` with the authorities of others linked in: step-ca,
// Vault and Google's certificate authority service, for --cas. It is a module of its own,
// outside the workspace, because their clients are larger than a service of the suite.
package main

import (
	"os"

	_ "github.com/smallstep/certificates/cas/cloudcas"
	_ "github.com/smallstep/certificates/cas/stepcas"
	_ "github.com/smallstep/certificates/cas/vaultcas"

	"github.com/portico-platform/portico/internal/pki/command"
)

func main() { os.Exit(command.Main(os.Args[1:], os.Stdout, os.Stderr)) }
