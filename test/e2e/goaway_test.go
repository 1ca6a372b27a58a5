package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptrace"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestGoawayChance: a fraction of the requests on HTTP/2 ask their client to open a new
// connection. None of them fails, and neither does a watch on the old connection. Clients
// on HTTP/1.1 keep theirs.
func TestGoawayChance(t *testing.T) {
	t.Parallel()
	a := startAllInOne(t, vocabulary.Platform(), "--goaway-chance=0.02")
	namespace := newNamespace(t, a.Client(t))
	for _, http2 := range []bool{true, false} {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(a.CA)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: http2, MaxConnsPerHost: 0}}
		events := watchOver(t, client, a.Cluster, namespace)
		connections := 0
		for range 800 {
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
				if !c.Reused {
					connections++
				}
			}})
			response := send(ctx, t, client, a.Cluster, "/api/v1/namespaces/"+namespace)
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK || (response.ProtoMajor == 2) != http2 {
				t.Fatalf("%d on %s", response.StatusCode, response.Proto)
			}
			if !http2 && response.Close {
				t.Fatal("a client on HTTP/1.1 is asked to close its connection")
			}
		}
		// On HTTP/1.1 the watch has a connection of its own, and the client gives one up whose request
		// seems unwritten 50 ms after its response, on a machine without time. The server would end 16.
		if !http2 && connections > 4 || http2 && (connections < 2 || connections > 80) {
			t.Errorf("HTTP/2 %v: %d new connections for 800 requests", http2, connections)
		}
		name := "over-" + strings.ToLower(map[bool]string{true: "two", false: "one"}[http2])
		if _, err := a.Client(t).Resource(configMaps()).Namespace(namespace).Create(t.Context(), configMap(name, "1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for line := ""; !strings.Contains(line, name); {
			var err error
			if line, err = events.ReadString('\n'); err != nil {
				t.Fatalf("the watch on the first connection has ended: %v", err)
			}
		}
		client.CloseIdleConnections()
	}
}

// watchOver begins a watch with a client.
func watchOver(t *testing.T, client *http.Client, c *cluster.Cluster, namespace string) *bufio.Reader {
	t.Helper()
	response := send(t.Context(), t, client, c, "/api/v1/namespaces/"+namespace+"/configmaps?watch=1")
	t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewReader(response.Body)
}

func send(ctx context.Context, t *testing.T, client *http.Client, c *cluster.Cluster, path string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// TestGoawayChanceBounds: values that would keep clients connecting are refused.
func TestGoawayChanceBounds(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"-0.001", "0.021", "1", "NaN", "often"} {
		out, err := exec.CommandContext(t.Context(), portico(t), "--data-dir="+t.TempDir(), "--secure-port=0", "--goaway-chance="+value).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "goaway-chance") {
			t.Errorf("%s: %v: %.300s", value, err, out)
		}
	}
}
