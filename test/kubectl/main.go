// Command kubectl is the standard client, built from its published library for the tests
// with standard clients. It is a separate module outside of the workspace, so that its
// dependencies do not affect those of the suite.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
