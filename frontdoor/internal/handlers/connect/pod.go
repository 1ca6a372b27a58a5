package connect

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// exec finds the node of a container, for exec and attach.
func (h *Handlers) exec(r *request.Request, o *options) (*backend, error) {
	pod, err := h.object(r, "pods", r.Namespace, r.Name)
	if err != nil {
		return nil, err
	}
	container, err := containerOf(r.Name, o.container, tree.Child(pod, "spec"))
	if err != nil {
		return nil, err
	}
	node, err := nodeOf(r, pod)
	if err != nil {
		return nil, err
	}
	if err := o.checkStreams(); err != nil {
		return nil, err
	}
	return h.onNode(r, node, &url.URL{Path: "/" + r.Subresource.Name + "/" + r.Namespace + "/" + r.Name + "/" + container,
		RawQuery: o.parameters().Encode()})
}

// portForward finds the node of a pod.
func (h *Handlers) portForward(r *request.Request, o *options) (*backend, error) {
	pod, err := h.object(r, "pods", r.Namespace, r.Name)
	if err != nil {
		return nil, err
	}
	node, err := nodeOf(r, pod)
	if err != nil {
		return nil, err
	}
	return h.onNode(r, node, &url.URL{Path: "/portForward/" + r.Namespace + "/" + r.Name, RawQuery: o.parameters().Encode()})
}

// nodeOf returns the node that a pod runs on.
func nodeOf(r *request.Request, pod map[string]any) (string, error) {
	node := tree.Text(pod, "spec", "nodeName")
	if node == "" {
		return "", services.BadRequest("pod %s does not have a host assigned", r.Name)
	}
	return node, nil
}

// podProxy finds the address of a pod, by default with the first port that it declares.
func (h *Handlers) podProxy(r *request.Request, o *options) (*backend, error) {
	t, err := parseTarget("pod", r.Name)
	if err != nil {
		return nil, err
	}
	if err := t.numbered("pod"); err != nil {
		return nil, err
	}
	pod, err := h.object(r, "pods", r.Namespace, t.name)
	if err != nil {
		return nil, err
	}
	address := ""
	if addresses := podAddresses(pod); len(addresses) > 0 {
		address = addresses[0]
	}
	if err := h.refuse(address); err != nil {
		return nil, err
	}
	return &backend{url: &url.URL{Scheme: t.scheme, Host: net.JoinHostPort(address, podPort(t, pod)), Path: o.path}, transport: h.Transports.Plain}, nil
}

// podPort returns the port of a pod that a target means.
func podPort(t target, pod map[string]any) string {
	if t.port != "" {
		return t.port
	}
	for _, container := range tree.Objects(pod, "spec", "containers") {
		for _, port := range tree.Objects(container, "ports") {
			return strconv.FormatInt(tree.Number(port, "containerPort"), 10)
		}
	}
	if t.scheme == "https" {
		return "443"
	}
	return "80"
}

// podAddresses returns the addresses of a pod, the primary one first.
func podAddresses(pod map[string]any) (addresses []string) {
	for _, ip := range tree.Objects(pod, "status", "podIPs") {
		addresses = append(addresses, tree.Text(ip, "ip"))
	}
	if len(addresses) == 0 {
		if ip := tree.Text(pod, "status", "podIP"); ip != "" {
			addresses = []string{ip}
		}
	}
	return addresses
}

// containerOf returns the container that a request means. It refuses one that the pod
// does not have, and none where it has several.
func containerOf(pod, container string, spec map[string]any) (string, error) {
	names, initial, ephemeral := containerNames(spec, "containers"), containerNames(spec, "initContainers"), containerNames(spec, "ephemeralContainers")
	if container == "" {
		if len(names) == 1 {
			return names[0], nil
		}
		why := "a container name must be specified for pod " + pod + ", choose one of: [" + strings.Join(names, " ") + "]"
		if len(initial) > 0 {
			why += " or one of the init containers: [" + strings.Join(initial, " ") + "]"
		}
		return "", services.BadRequest("%s", why)
	}
	for _, list := range [][]string{names, initial, ephemeral} {
		for _, name := range list {
			if name == container {
				return name, nil
			}
		}
	}
	return "", services.BadRequest("container %s is not valid for pod %s", container, pod)
}

func containerNames(spec map[string]any, of string) (names []string) {
	for _, container := range tree.Objects(spec, of) {
		names = append(names, tree.Text(container, "name"))
	}
	return names
}
