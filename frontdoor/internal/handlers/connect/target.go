package connect

import (
	"strconv"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/services"
)

// target is the target of a proxy request.
type target struct {
	scheme string // http or https
	name   string
	port   string // a number, or the name of a service's port; empty for the default
}

// parseTarget reads the name in the path of a proxy: name, name:port or
// scheme:name:port. what names its type for the BadRequest (400).
func parseTarget(what, given string) (target, error) {
	scheme, name, port, ok := utilnet.SplitSchemeNamePort(given)
	if !ok {
		return target{}, services.BadRequest("invalid %s request %q", what, given)
	}
	if scheme == "" {
		scheme = "http"
	}
	if port != "" && len(validation.IsValidPortName(port)) > 0 && portNumber(port) == 0 {
		return target{}, services.BadRequest("invalid %s request %q: %q is neither the number nor the name of a port", what, given, port)
	}
	return target{scheme, name, port}, nil
}

// portNumber returns the number of a port; 0 when the text is none.
func portNumber(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// numbered refuses the name of a port where only a number has a meaning.
func (t target) numbered(what string) error {
	if t.port != "" && portNumber(t.port) == 0 {
		return services.BadRequest("invalid %s request: the port %q is not a number", what, t.port)
	}
	return nil
}
