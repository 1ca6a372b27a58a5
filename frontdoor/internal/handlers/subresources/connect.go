package subresources

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// Connect serves the subresources that hand a connection on to where a pod runs: exec,
// attach, port forwarding and proxies. Admission sees the options of the connection as
// its object, whose changes have no effect because nothing is connected: nodes are not
// reached by this service, so that the answer is an error that says so.
func (h *Handlers) Connect(w http.ResponseWriter, r *request.Request) error {
	if r.Query.Has("dryRun") {
		return services.BadRequest("dryRun is not supported")
	}
	options, err := connectOptions(r)
	if err != nil {
		return err
	}
	if err := h.admitConnect(w, r, options); err != nil {
		return err
	}
	key := r.Key()
	if _, name, _, ok := utilnet.SplitSchemeNamePort(key.Name); ok {
		key.Name = name // a proxied pod or service is named with its scheme and port
	}
	object, err := h.Store.Get(r.Context(), services.GetRequest{Key: key})
	if err != nil {
		return err
	}
	live, err := r.Engine.DecodeStored(r.Context(), object, r.Type)
	if err != nil {
		return err
	}
	if r.Type.Key == pods && tree.Text(live, "spec", "nodeName") == "" {
		return services.BadRequest("pod %s does not have a host assigned", r.Name)
	}
	return NoNode(r)
}

// admitConnect asks admission, with the options as the object. Its warnings go into the
// headers of w.
func (h *Handlers) admitConnect(w http.ResponseWriter, r *request.Request, options []byte) error {
	call := admit.Connect(h.Admission, r)
	defer call.SendWarnings(w.Header())
	review := call.Review(admit.Subject{Operation: services.OperationConnect, Type: r.Engine.BodyType(r.Type, r.Subresource),
		Namespace: r.Namespace, Name: r.Name})
	changed, err := review.Mutate(r.Context(), admit.Object{JSON: options})
	if err != nil {
		return err
	}
	if changed != nil {
		options = changed
	}
	return review.Validate(r.Context(), admit.Object{JSON: options})
}

// connectOptions returns the options of a connection that the path and the query
// parameters stand for, as JSON. BadRequest (400) when a parameter cannot be read.
func connectOptions(r *request.Request) ([]byte, error) {
	q, kind := r.Query, metav1.TypeMeta{Kind: r.Subresource.Kind, APIVersion: r.Type.APIVersion()}
	var options any
	switch kind.Kind {
	case "PodExecOptions":
		options = corev1.PodExecOptions{TypeMeta: kind, Stdin: request.BoolOption(q, "stdin"), Stdout: request.BoolOption(q, "stdout"), Stderr: request.BoolOption(q, "stderr"),
			TTY: request.BoolOption(q, "tty"), Container: q.Get("container"), Command: q["command"]}
	case "PodAttachOptions":
		options = corev1.PodAttachOptions{TypeMeta: kind, Stdin: request.BoolOption(q, "stdin"), Stdout: request.BoolOption(q, "stdout"), Stderr: request.BoolOption(q, "stderr"),
			TTY: request.BoolOption(q, "tty"), Container: q.Get("container")}
	case "PodPortForwardOptions":
		ports, err := portsOf(q)
		if err != nil {
			return nil, err
		}
		options = corev1.PodPortForwardOptions{TypeMeta: kind, Ports: ports}
	default: // those of a proxy are alike for pods, services and nodes
		options = corev1.NodeProxyOptions{TypeMeta: kind, Path: proxyPath(r)}
	}
	return json.Marshal(options)
}

// portsOf reads the parameters ports, each a list of numbers.
func portsOf(q url.Values) (ports []int32, err error) {
	for _, list := range q["ports"] {
		for _, given := range strings.Split(list, ",") {
			port, err := strconv.ParseUint(given, 10, 16)
			if err != nil {
				return nil, services.BadRequest("ports: %q is not the number of a port", given)
			}
			ports = append(ports, int32(port))
		}
	}
	return ports, nil
}

// proxyPath returns the path that a proxy is asked for: what follows the subresource,
// and the slash at its end.
func proxyPath(r *request.Request) string {
	path := r.Subpath
	if path != "" {
		path = "/" + strings.TrimPrefix(path, "/")
	}
	if strings.HasSuffix(r.URL.Path, "/") && !strings.HasSuffix(path, "/") {
		path += "/"
	}
	return path
}
