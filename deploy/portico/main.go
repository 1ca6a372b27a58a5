// Command portico is the all-in-one: every service of the suite in one process, with
// embedded etcd and NATS unless flags name others. It only lists the services, which also
// run as separate processes with the same code.
package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/portico-platform/portico/admission"
	"github.com/portico-platform/portico/authn"
	"github.com/portico-platform/portico/authz"
	csrsigner "github.com/portico-platform/portico/csr-signer"
	"github.com/portico-platform/portico/deploy/internal/admissionproject"
	"github.com/portico-platform/portico/deploy/internal/backup"
	"github.com/portico-platform/portico/deploy/internal/doctor"
	"github.com/portico-platform/portico/deploy/internal/home"
	"github.com/portico-platform/portico/deploy/internal/hook"
	"github.com/portico-platform/portico/deploy/internal/pki"
	"github.com/portico-platform/portico/frontdoor"
	"github.com/portico-platform/portico/lifecycle"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/store"
	etcd "github.com/portico-platform/portico/store/embedded"
	tokencleaner "github.com/portico-platform/portico/token-cleaner"
	watchhub "github.com/portico-platform/portico/watch-hub"
	nats "github.com/portico-platform/portico/watch-hub/embedded"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "pki" {
		os.Exit(pki.Main(os.Args[2:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == "admission" {
		os.Exit(admissionproject.Main(os.Args[2:], os.Stdout, os.Stderr))
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
	services := []run.Service{home.Service()}
	if !given(args, "--etcd-servers") {
		services = append(services, etcd.Service())
	}
	if !given(args, "--nats-url") {
		services = append(services, nats.Service())
	}
	services = append(services,
		store.Service(),
		watchhub.Service(),
		authn.Service(),
		authz.Service(),
		admission.Service(),
		frontdoor.Service(),
		csrsigner.Service(),
		tokencleaner.Service(),
		lifecycle.Service(),
		home.Welcome(),
	)
	return run.App{
		Name: "portico",
		About: "A cluster API service: typed resources over HTTPS, stored in etcd, watched over NATS. " +
			"This is the whole suite in one process, with embedded etcd and NATS; --etcd-servers and --nats-url " +
			"name an etcd cluster and NATS servers to use instead. The command pki creates the certificates " +
			"of a suite of separate processes, backup and restore save and restore the stored objects, doctor examines a running suite, " +
			"admission new writes the project of an admission service: portico pki --help, portico backup --help, portico doctor --help, portico admission --help.",
		Services: services,
	}
}

// given reports whether a flag is among the arguments.
func given(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == flag || strings.HasPrefix(arg, flag+"=")
	})
}
