// Package allinone lists the services of the suite that run in one process, with embedded etcd
// and NATS unless flags name others. It only lists them: each also runs as a process of its
// own with the same code.
package allinone

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/admission"
	"github.com/portico-platform/portico/authn"
	"github.com/portico-platform/portico/authz"
	csrsigner "github.com/portico-platform/portico/csr-signer"
	"github.com/portico-platform/portico/frontdoor"
	"github.com/portico-platform/portico/internal/home"
	"github.com/portico-platform/portico/lifecycle"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/store"
	etcd "github.com/portico-platform/portico/store/embedded"
	tokencleaner "github.com/portico-platform/portico/token-cleaner"
	watchhub "github.com/portico-platform/portico/watch-hub"
	nats "github.com/portico-platform/portico/watch-hub/embedded"
)

// WithHome returns the services that args need, with the one that creates the data folder: the files that flags of the
// others name. A first start that fails before the front door serves leaves no trace in that folder.
func WithHome(args []string) []run.Service {
	first, serving := home.Services()
	return append(append([]run.Service{first}, Services(args)...), serving)
}

// Services returns the services that args need, in the order of their start; they stop in
// reverse order. They read files that flags name.
func Services(args []string) []run.Service {
	var services []run.Service
	if !given(args, "--etcd-servers") {
		services = append(services, etcd.Service())
	}
	if !given(args, "--nats-url") {
		services = append(services, nats.Service())
	}
	return append(services,
		store.Service(),
		watchhub.Service(),
		authn.Service(),
		authz.Service(),
		admission.Service(),
		frontdoor.Service(),
	)
}

// Workers returns the services that are clients of the API. They start last.
func Workers() []run.Service {
	return []run.Service{csrsigner.Service(), tokencleaner.Service(), lifecycle.Service()}
}

// given reports whether a flag is among the arguments.
func given(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == flag || strings.HasPrefix(arg, flag+"=")
	})
}
