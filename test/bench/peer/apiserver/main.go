// Command apiserver is the reference server, built from its published module for
// make bench-peer. It is a module of its own, outside the workspace, and not a part of
// Portico.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
