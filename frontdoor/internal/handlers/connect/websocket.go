package connect

import (
	"net/http"

	"k8s.io/apimachinery/pkg/util/proxy"
	translate "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
)

// translated returns a handler that translates the newest WebSocket protocols of clients
// to SPDY, which every node supports: the fifth version of the protocol of exec and attach,
// and SPDY tunnelled through a WebSocket for port forwarding. Everything else is handed
// on as it is. The URL of direct must have the scheme http.
func translated(r *request.Request, o *options, direct *proxy.UpgradeAwareHandler) http.Handler {
	switch {
	case tunnels(r):
		return translate.NewTunnelingHandler(direct)
	case hasStreams(r) && wsstream.IsWebSocketRequestWithStreamCloseProtocol(r.Request):
		return translate.NewStreamTranslatorHandler(direct.Location, direct.Transport, 0,
			translate.Options{Stdin: o.stdin, Stdout: o.stdout, Stderr: o.stderr, Tty: o.tty})
	}
	return direct
}

// tunnels reports whether a request tunnels SPDY through a WebSocket.
func tunnels(r *request.Request) bool {
	return r.Subresource.Name == "portforward" && wsstream.IsWebSocketRequestWithTunnelingProtocol(r.Request)
}

// hasStreams reports whether a request has the streams of a command.
func hasStreams(r *request.Request) bool {
	return r.Subresource.Name == "exec" || r.Subresource.Name == "attach"
}
