package frontdoor

import (
	"context"
	"net/http"
	"net/http/pprof"
	"runtime"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/issuer"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/routes"
)

// profiledBytes is the usual rate of samples of the memory profile.
const profiledBytes = 512 << 10

// routes returns the router of the paths that are no resources. Those of resources are data, which package
// request parses. Which documents there are depends on the types, so that discovery finds them itself.
func (d *door) routes(n *run.Node, profiling bool) http.Handler {
	r := routes.New()
	r.MethodNotAllowed(failing(func(http.ResponseWriter, *http.Request) error { return request.NoMethod() }))
	n.Routes(r)
	documents := failing(func(w http.ResponseWriter, r *http.Request) error { return d.types.Load().documents.Serve(w, r) })
	for _, path := range []string{"/", "/version", "/version/", "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"} {
		r.Get(path, documents)
	}
	for path, document := range issuer.Documents(d.actions.Tokens) {
		r.Get(path, failing(document))
	}
	for path, dump := range d.fairnessDumps() {
		r.Get(path, dump)
	}
	r.Get(operations.Root+"/requests", failing(d.audit.Recent.Serve))
	if d.operations != nil {
		d.operations.Routes(r, failing)
	}
	if profiling {
		runtime.MemProfileRate = profiledBytes
		r.Get("/debug/pprof", http.RedirectHandler("/debug/pprof/", http.StatusMovedPermanently).ServeHTTP)
		r.Get("/debug/pprof/*", pprof.Index)
		r.Get("/debug/pprof/profile", pprof.Profile)
		r.Get("/debug/pprof/trace", pprof.Trace)
	}
	return r
}

// health reports whether a path is that of a health check.
func health(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "healthz" || first == "livez" || first == "readyz"
}

// failure is the error of a handler behind the router.
type failure struct{ err error }

type failureKey struct{}

// plain serves a path that is no resource. The error is that of the handler, for the stages to write.
func (d *door) plain(w http.ResponseWriter, r *request.Request) error {
	var failed failure
	ctx := context.WithValue(r.Context(), failureKey{}, &failed)
	if r.Health && slices.Contains(r.User.Groups, services.GroupMasters) {
		ctx = run.WithReasons(ctx)
	}
	d.router.ServeHTTP(w, r.WithContext(ctx))
	return failed.err
}

// failing adapts a handler that returns its error.
func failing(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Context().Value(failureKey{}).(*failure).err = serve(w, r)
	}
}
