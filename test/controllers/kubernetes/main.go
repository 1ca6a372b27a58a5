// Command kubernetes is the controller manager and the scheduler of Kubernetes 1.36, built
// from its published module for make test-controllers. It is a module of its own, outside
// the workspace, and not a part of Portico.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	root := &cobra.Command{Use: "kubernetes", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(manager.NewControllerManagerCommand(), scheduler.NewSchedulerCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
