// Command kubectl is the stock client, built from its published library for the
// tests that show stock clients work. It is a module of its own, outside the
// workspace, so that its dependencies never meet the suite's.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
