// Package routes makes the router of the paths that are no resources: health, metrics
// and, in the front door, documents.
package routes

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// New returns a router without routes. It routes the unescaped path, which is the one
// that authorization decides about: an escaped character does not make another path of
// it. Handlers of GET also answer HEAD.
func New() chi.Router {
	r := chi.NewRouter()
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			route := chi.RouteContext(r.Context())
			route.RoutePath = r.URL.Path
			if r.Method == http.MethodHead {
				route.RouteMethod = http.MethodGet
			}
			next.ServeHTTP(w, r)
		})
	})
	return r
}
