package subresources

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// log answers for the logs of a container. They are kept by the node that runs it,
// which this service does not reach: of a pod without a node there is nothing to show
// (204), and any other is an error. The pod itself is never shown, since whoever may
// read logs need not be allowed to read pods.
func (h *Handlers) log(w http.ResponseWriter, r *request.Request) error {
	pod, err := h.Store.Get(r.Context(), services.GetRequest{Key: r.Key()})
	if err != nil {
		return err
	}
	if causes := logCauses(r); len(causes) > 0 {
		return services.Invalid("", "PodLogOptions", r.Name, causes)
	}
	live, err := r.Engine.DecodeStored(r.Context(), pod, r.Type)
	if err != nil {
		return err
	}
	spec := tree.Child(live, "spec")
	if err := checkContainer(r.Name, r.Query.Get("container"), spec); err != nil {
		return err
	}
	if tree.Text(spec, "nodeName") != "" {
		return NoNode(r)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// NoNode is the 503 of a request that only the node of a pod, a service or the node
// itself could serve. It does not invite the client to repeat it.
func NoNode(r *request.Request) *services.Status {
	s := services.Unavailable("%s/%s: this service does not reach nodes, and cannot connect to %s %q",
		r.Type.Resource, r.SubresourceName(), r.Type.Singular, r.Name)
	s.Details = nil
	return s
}

// logCauses returns what is wrong with the parameters.
func logCauses(r *request.Request) (causes []services.StatusCause) {
	invalid := func(name, why string) {
		causes = append(causes, services.StatusCause{Reason: services.CauseInvalid, Field: name,
			Message: "Invalid value: " + strconv.Quote(r.Query.Get(name)) + ": " + why})
	}
	for name, least := range map[string]int64{"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1} {
		if given := r.Query.Get(name); given != "" {
			if n, err := strconv.ParseInt(given, 10, 64); err != nil || n < least {
				invalid(name, "must be an integer greater than or equal to "+strconv.FormatInt(least, 10))
			}
		}
	}
	if since := r.Query.Get("sinceTime"); since != "" {
		if _, err := time.Parse(time.RFC3339, since); err != nil {
			invalid("sinceTime", "must be an RFC 3339 time")
		}
		if r.Query.Get("sinceSeconds") != "" {
			causes = append(causes, services.StatusCause{Reason: services.CauseForbidden, Field: "sinceSeconds",
				Message: "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"})
		}
	}
	return causes
}

// checkContainer refuses a container that the pod does not have, and no container where
// it has several.
func checkContainer(pod, container string, spec map[string]any) error {
	names, initial, ephemeral := containerNames(spec, "containers"), containerNames(spec, "initContainers"), containerNames(spec, "ephemeralContainers")
	if container == "" {
		if len(names) == 1 {
			return nil
		}
		why := "a container name must be specified for pod " + pod + ", choose one of: [" + strings.Join(names, " ") + "]"
		if len(initial) > 0 {
			why += " or one of the init containers: [" + strings.Join(initial, " ") + "]"
		}
		return services.BadRequest("%s", why)
	}
	for _, list := range [][]string{names, initial, ephemeral} {
		for _, name := range list {
			if name == container {
				return nil
			}
		}
	}
	return services.BadRequest("container %s is not valid for pod %s", container, pod)
}

func containerNames(spec map[string]any, of string) (names []string) {
	for _, container := range tree.Objects(spec, of) {
		names = append(names, tree.Text(container, "name"))
	}
	return names
}
