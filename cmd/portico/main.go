// Command portico is the all-in-one: every service of the suite in one process, with
// embedded etcd and NATS unless flags name others. It only lists the services, which also
// run as separate processes with the same code.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/portico-platform/portico/internal/admissionproject"
	"github.com/portico-platform/portico/internal/allinone"
	"github.com/portico-platform/portico/internal/auditlog"
	"github.com/portico-platform/portico/internal/backup"
	"github.com/portico-platform/portico/internal/doctor"
	"github.com/portico-platform/portico/internal/home"
	"github.com/portico-platform/portico/internal/hook"
	"github.com/portico-platform/portico/internal/pki/command"
	"github.com/portico-platform/portico/internal/testassets"
	"github.com/portico-platform/portico/internal/tools"
	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	testassets.Run(os.Args)
	if tools.Handles(os.Args) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second signal ends the process
		status := tools.Main(ctx, os.Args, os.Stdout, os.Stderr)
		stop()
		os.Exit(status)
	}
	if len(os.Args) > 1 {
		if command := commands[os.Args[1]]; command != nil {
			os.Exit(command(context.Background(), os.Args[2:], os.Stdout, os.Stderr))
		}
	}
	run.Main(app(os.Args[1:]))
}

// commands are what the program does instead of running the suite, by its first argument.
var commands = map[string]func(ctx context.Context, args []string, out, errs io.Writer) int{
	"admission": local(admissionproject.Main),
	"audit":     local(auditlog.Main),
	"backup":    named("backup", backup.Main),
	"doctor":    doctor.Main,
	"envtest":   local(testassets.Main),
	"hook":      hook.Main,
	"pki":       local(command.Main),
	"restore":   named("restore", backup.Main),
}

// local adapts a command that makes no network calls.
func local(command func(args []string, out, errs io.Writer) int) func(context.Context, []string, io.Writer, io.Writer) int {
	return func(_ context.Context, args []string, out, errs io.Writer) int { return command(args, out, errs) }
}

// named adapts a command that takes its name as first argument.
func named(name string, command func(ctx context.Context, args []string, out, errs io.Writer) int) func(context.Context, []string, io.Writer, io.Writer) int {
	return func(ctx context.Context, args []string, out, errs io.Writer) int {
		return command(ctx, append([]string{name}, args...), out, errs)
	}
}

// app lists the services in the order of their start; they stop in reverse order.
func app(args []string) run.App {
	services := append([]run.Service{allinone.Home()}, allinone.Services(args)...)
	services = append(append(services, allinone.Workers()...), home.Welcome())
	return run.App{
		Name: "portico",
		About: "A cluster API service: typed resources over HTTPS, stored in etcd, watched over NATS. " +
			"This is the whole suite in one process, with embedded etcd and NATS; --etcd-servers and --nats-url " +
			"select an etcd cluster and NATS servers instead.  The command pki creates the certificates " +
			"of a suite of separate processes, backup and restore save and restore the stored objects, doctor checks a running suite, " +
			"admission new creates the project of an admission service, envtest creates the programs for test suites, and audit verify verifies an audit log; who-can, certs and others are tools for a running suite: portico who-can --help, portico pki --help, portico backup --help, portico doctor --help, portico admission --help, portico audit --help.",
		Services: services,
	}
}
