// Command portico is the all-in-one: every service of the suite in one process, with
// embedded etcd and NATS unless flags name others. It only lists the services, which also
// run as separate processes with the same code.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/portico-platform/portico/deploy/internal/admissionproject"
	"github.com/portico-platform/portico/deploy/internal/allinone"
	"github.com/portico-platform/portico/deploy/internal/auditlog"
	"github.com/portico-platform/portico/deploy/internal/backup"
	"github.com/portico-platform/portico/deploy/internal/doctor"
	"github.com/portico-platform/portico/deploy/internal/home"
	"github.com/portico-platform/portico/deploy/internal/hook"
	"github.com/portico-platform/portico/deploy/internal/pki"
	"github.com/portico-platform/portico/deploy/internal/testassets"
	"github.com/portico-platform/portico/deploy/internal/tools"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	testassets.Run(os.Args)
	if tools.Handles(os.Args) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		status := tools.Main(ctx, os.Args, os.Stdout, os.Stderr)
		stop()
		os.Exit(status)
	}
	if len(os.Args) > 1 && os.Args[1] == "envtest" {
		os.Exit(testassets.Main(os.Args[2:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == "pki" {
		os.Exit(pki.Main(os.Args[2:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == "admission" {
		os.Exit(admissionproject.Main(os.Args[2:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == "audit" {
		os.Exit(auditlog.Main(os.Args[2:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == "hook" {
		os.Exit(hook.Main(context.Background(), os.Args[2:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == "doctor" {
		os.Exit(doctor.Main(context.Background(), os.Args[2:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && (os.Args[1] == "backup" || os.Args[1] == "restore") {
		os.Exit(backup.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	run.Main(app(os.Args[1:]))
}

// app lists the services in the order of their start; they stop in reverse order.
func app(args []string) run.App {
	services := append([]run.Service{allinone.Home()}, allinone.Services(args)...)
	services = append(append(services, allinone.Workers()...), home.Welcome())
	return run.App{
		Name: "portico",
		About: "A cluster API service: typed resources over HTTPS, stored in etcd, watched over NATS. " +
			"This is the whole suite in one process, with embedded etcd and NATS; --etcd-servers and --nats-url " +
			"name an etcd cluster and NATS servers to use instead. The command pki creates the certificates " +
			"of a suite of separate processes, backup and restore save and restore the stored objects, doctor examines a running suite, " +
			"admission new writes the project of an admission service, envtest makes the programs of test suites, audit verify verifies an audit log, who-can and others are tools for a running suite: portico who-can --help, portico pki --help, portico backup --help, portico doctor --help, portico admission --help, portico audit --help.",
		Services: services,
	}
}
