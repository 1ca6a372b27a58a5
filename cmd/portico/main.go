// Command portico is the all-in-one: every service of the suite in one process, with
// embedded etcd and NATS unless flags name others. It lists the services, which also
// run as separate processes with the same code; package cli has the other commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/portico-platform/portico/internal/allinone"
	"github.com/portico-platform/portico/internal/cli"
	"github.com/portico-platform/portico/internal/home"
	"github.com/portico-platform/portico/internal/testassets"
	"github.com/portico-platform/portico/internal/tools"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	testassets.Run(os.Args)
	args := os.Args[1:]
	plugin := filepath.Base(os.Args[0]) == "kubectl-portico"
	if !plugin && (len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != "--version" && args[0] != "-v") {
		cli.Serve(app, args)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	if plugin {
		os.Exit(tools.Main(ctx, args, os.Stdout, os.Stderr))
	}
	if args[0] == "--version" || args[0] == "-v" {
		args[0] = "version"
	}
	os.Exit(cli.Main(ctx, app, args, os.Stdout, os.Stderr))
}

// app lists the services in the order of their start; they stop in reverse order.
func app(args []string) run.App {
	return run.App{
		Name: "portico",
		About: "A cluster API service: typed resources over HTTPS, stored in etcd, watched over NATS. " +
			"This is the whole suite in one process, with embedded etcd and NATS; --etcd-servers and --nats-url " +
			"select an etcd cluster and NATS servers instead.  portico help lists the other commands, portico version prints the version.",
		Services: append(append(allinone.WithHome(args), allinone.Workers()...), home.Welcome()),
		Defaults: home.Defaults,
	}
}
