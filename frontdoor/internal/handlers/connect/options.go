package connect

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// options are those of a connection. The kind says which members it has.
type options struct {
	kind metav1.TypeMeta

	stdin, stdout, stderr, tty bool
	container                  string
	command                    []string
	ports                      []int32
	path                       string
}

// parseOptions reads the options from the path and the query parameters.
// BadRequest (400) when a parameter cannot be read.
func parseOptions(r *request.Request) (*options, error) {
	q := r.Query
	o := &options{kind: metav1.TypeMeta{Kind: r.Subresource.Kind, APIVersion: r.Type.APIVersion()}}
	switch o.kind.Kind {
	case "PodExecOptions", "PodAttachOptions":
		o.stdin, o.stdout, o.stderr = request.BoolOption(q, "stdin"), request.BoolOption(q, "stdout"), request.BoolOption(q, "stderr")
		o.tty, o.container = request.BoolOption(q, "tty"), q.Get("container")
		if o.kind.Kind == "PodExecOptions" {
			o.command = q["command"]
		}
	case "PodPortForwardOptions":
		ports, err := portsOf(q)
		if err != nil {
			return nil, err
		}
		o.ports = ports
	default:
		o.path = proxyPath(r)
	}
	return o, nil
}

// encode returns the options as the object that admission sees.
func (o *options) encode() ([]byte, error) {
	switch o.kind.Kind {
	case "PodExecOptions":
		return json.Marshal(corev1.PodExecOptions{TypeMeta: o.kind, Stdin: o.stdin, Stdout: o.stdout, Stderr: o.stderr, TTY: o.tty,
			Container: o.container, Command: o.command})
	case "PodAttachOptions":
		return json.Marshal(corev1.PodAttachOptions{TypeMeta: o.kind, Stdin: o.stdin, Stdout: o.stdout, Stderr: o.stderr, TTY: o.tty,
			Container: o.container})
	case "PodPortForwardOptions":
		return json.Marshal(corev1.PodPortForwardOptions{TypeMeta: o.kind, Ports: o.ports})
	default: // those of a proxy are alike for pods, services and nodes
		return json.Marshal(corev1.NodeProxyOptions{TypeMeta: o.kind, Path: o.path})
	}
}

// decode takes the options as admission has changed them.
func (o *options) decode(raw []byte) error {
	// PodExecOptions has all members of the options of an attach.
	var all struct {
		corev1.PodExecOptions
		Ports []int32 `json:"ports"`
		Path  string  `json:"path"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return services.BadRequest("admission has changed the options of the connection to invalid values: %v", err)
	}
	*o = options{kind: o.kind, stdin: all.Stdin, stdout: all.Stdout, stderr: all.Stderr, tty: all.TTY,
		container: all.Container, command: all.Command, ports: all.Ports, path: all.Path}
	return nil
}

// checkStreams refuses options without any stream. With a terminal there is no stderr.
func (o *options) checkStreams() error {
	o.stderr = o.stderr && !o.tty
	if !o.stdin && !o.stdout && !o.stderr {
		return services.BadRequest("you must specify at least 1 of stdin, stdout, stderr")
	}
	return nil
}

// parameters returns the options as a node reads them.
func (o *options) parameters() url.Values {
	q := url.Values{}
	for name, set := range map[string]bool{corev1.ExecStdinParam: o.stdin, corev1.ExecStdoutParam: o.stdout, corev1.ExecStderrParam: o.stderr, corev1.ExecTTYParam: o.tty} {
		if set {
			q.Set(name, "1")
		}
	}
	if len(o.command) > 0 {
		q["command"] = o.command
	}
	if len(o.ports) > 0 {
		texts := make([]string, len(o.ports))
		for i, port := range o.ports {
			texts[i] = strconv.Itoa(int(port))
		}
		q.Set(corev1.PortHeader, strings.Join(texts, ","))
	}
	return q
}

// portsOf reads the parameters ports, each a list of numbers.
func portsOf(q url.Values) (ports []int32, err error) {
	for _, list := range q["ports"] {
		for _, given := range strings.Split(list, ",") {
			port, err := strconv.ParseUint(given, 10, 16)
			if err != nil {
				return nil, services.BadRequest("ports: %q is not a port number", given)
			}
			ports = append(ports, int32(port))
		}
	}
	return ports, nil
}

// proxyPath returns the path for a proxy request: what follows the subresource,
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
