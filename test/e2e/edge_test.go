package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// atOnce is how long an administrator waits for an answer at most, whatever others do: one that waited
// for them would wait for the ten seconds in which a body must begin, or the thirty in which an answer
// must be read. What it really takes is in the log of the test.
const atOnce = 5 * time.Second

// TestInventedRequests sends anonymous requests in which nothing is the same twice:
// neither the metrics nor the memory grow with them.
func TestInventedRequests(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends 20,000 requests")
	}
	a := startAllInOne(t, vocabulary.Platform(), "--memory-budget=33554432") // much garbage would hide what is kept
	invent := func(from, to int) {
		var senders sync.WaitGroup
		for worker := range 8 {
			senders.Go(func() {
				conn := a.dial(t, "http/1.1")
				answers := bufio.NewReader(conn)
				for i := from + worker; i < to; i += 8 {
					if err := a.invent(conn, answers, i); err != nil {
						t.Errorf("request %d: %v", i, err)
						return
					}
				}
			})
		}
		senders.Wait()
	}
	invent(0, 1000)
	series, before := a.series(t), a.process.residentMemory(t)
	invent(1000, 21_000)
	after := a.process.residentMemory(t)
	t.Logf("%d series before, %d after; %d MiB before, %d after", series, a.series(t), before>>20, after>>20)
	if grown := a.series(t) - series; grown > 30 {
		t.Errorf("there are %d new series", grown)
	}
	if after > before+40<<20 {
		t.Errorf("memory has grown by %d MiB", (after-before)>>20)
	}
	var names strings.Builder
	_, _ = io.Copy(&names, strings.NewReader(a.Ask(t, cluster.Request{Path: "/metrics"}).Body))
	if strings.Contains(names.String(), "invented") {
		t.Error("what clients invent is in the metrics")
	}
	if got := a.Ask(t, cluster.Request{Method: "INVENTED", Path: "/api/v1/nodes"}); got.Code != http.StatusMethodNotAllowed {
		t.Errorf("an invented method: got %d", got.Code)
	}
}

// invent sends one request and reads its answer.
func (a *allInOne) invent(conn net.Conn, answers *bufio.Reader, i int) error {
	method, path, agent, host, query := "GET", "/invented", "test", "x", ""
	switch i % 8 {
	case 0:
		method = "INVENTED" + strconv.Itoa(i)
	case 1:
		path = fmt.Sprintf("/apis/invented%d/v%d/invented%ds", i, i, i)
	case 2:
		path = fmt.Sprintf("/api/v1/namespaces/invented%d/pods/invented%d/invented%d", i, i, i)
	case 3:
		agent = "invented" + strconv.Itoa(i)
	case 4:
		host = "invented" + strconv.Itoa(i)
	case 5:
		path, query = "/api/v1/pods", fmt.Sprintf("?watch=invented%d&labelSelector=invented%d&invented%d=1", i, i, i)
	case 6:
		method, path = "INVENTED"+strconv.Itoa(i), fmt.Sprintf("/api/v1/invented%d", i)
	case 7:
		path = "/livez/invented" + strconv.Itoa(i)
	}
	_, err := fmt.Fprintf(conn, "%s %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nInvented-%d: x\r\n\r\n", method, path, query, host, agent, i)
	if err != nil {
		return err
	}
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if strings.HasPrefix(method, "INVENTED") && answer.StatusCode != http.StatusMethodNotAllowed {
		return fmt.Errorf("%s %s is answered %s", method, path, answer.Status)
	}
	return nil
}

// series counts the series of the metrics.
func (a *allInOne) series(t *testing.T) (n int) {
	for line := range strings.Lines(a.Ask(t, cluster.Request{Path: "/metrics"}).Body) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

// residentMemory returns the memory of a process in bytes.
func (p *process) residentMemory(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(content), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// dial opens a connection of a version of HTTP.
func (a *allInOne) dial(t *testing.T, protocol string) net.Conn {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CA)
	conn, err := tls.Dial("tcp", a.address, &tls.Config{RootCAs: roots, NextProtos: []string{protocol}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// account makes a service account and returns the cluster as it sees it.
func (a *allInOne) account(t *testing.T, namespace, name string) *allInOne {
	t.Helper()
	base := "/api/v1/namespaces/" + namespace + "/serviceaccounts"
	made := a.Ask(t, cluster.Request{Method: "POST", Path: base, Body: `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"` + name + `"}}`})
	if made.Code >= 300 {
		t.Fatal(made)
	}
	group := a.Vocabulary.Group("authentication.")
	issued := a.Ask(t, cluster.Request{Method: "POST", Path: base + "/" + name + "/token",
		Body: `{"apiVersion":"` + group + `/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`})
	if issued.Code >= 300 {
		t.Fatal(issued)
	}
	var token struct{ Status struct{ Token string } }
	issued.Decode(t, &token)
	seen := *a.Cluster
	seen.Token = token.Status.Token
	return &allInOne{Cluster: &seen, process: a.process, address: a.address}
}

func (a *allInOne) reviews() string {
	return "/apis/" + a.Vocabulary.Group("authorization.") + "/v1/selfsubjectaccessreviews"
}

// TestSlowBodies holds many writes of one user open, on both versions of HTTP:
// others write at once, and the slow ones end by themselves.
func TestSlowBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	a := startAllInOne(t, vocabulary.Platform())
	namespace := newNamespace(t, a.Client(t))
	greedy, modest := a.account(t, namespace, "greedy"), a.account(t, namespace, "modest")
	ended := make(chan error, 3000)
	for range 700 {
		conn := a.dial(t, "http/1.1")
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
			a.reviews(), greedy.Token); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := io.ReadAll(conn)
			ended <- err
		}()
	}
	for range 10 {
		conn := a.dial(t, "h2")
		slow := newStreams(t, conn, 1<<16)
		for range 130 {
			slow.open(t, "POST", a.reviews(), greedy.Token, true)
		}
	}
	a.checkUndisturbed(t, modest, namespace)
	for range 700 {
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("slow bodies do not end")
		}
	}
	a.checkUndisturbed(t, modest, namespace)
}

// TestAnonymousConnections keeps opening connections: some never complete their headers,
// and some send unexpected bodies. All of them are closed, and other clients are not
// affected.
func TestAnonymousConnections(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	a := startAllInOne(t, vocabulary.Platform())
	namespace := newNamespace(t, a.Client(t))
	modest := a.account(t, namespace, "modest")
	ended := make(chan struct{}, 1000)
	for _, begun := range []string{"GET /livez HTTP/1.1\r\nHost: x\r\nX: ", "POST " + a.reviews() + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"} {
		for range 400 {
			conn := a.dial(t, "http/1.1")
			if _, err := io.WriteString(conn, begun); err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = io.Copy(io.Discard, conn)
				ended <- struct{}{}
			}()
		}
	}
	a.checkUndisturbed(t, modest, namespace)
	for range 800 {
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("connections that send nothing stay")
		}
	}
}

// checkUndisturbed lets an administrator and another user read and write.
func (a *allInOne) checkUndisturbed(t *testing.T, modest *allInOne, namespace string) {
	t.Helper()
	configMaps := "/api/v1/namespaces/" + namespace + "/configmaps"
	review := `{"apiVersion":"` + a.Vocabulary.Group("authorization.") + `/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`
	var slowest time.Duration
	for range 20 {
		for _, c := range []struct {
			as      *allInOne
			request cluster.Request
		}{
			{a, cluster.Request{Method: "POST", Path: configMaps, Body: `{"metadata":{"generateName":"a-"}}`}},
			{a, cluster.Request{Path: configMaps + "?limit=1"}},
			{modest, cluster.Request{Method: "POST", Path: a.reviews(), Body: review}},
			{modest, cluster.Request{Path: "/version"}},
		} {
			began := time.Now()
			got := c.as.Ask(t, c.request)
			took := time.Since(began)
			slowest = max(slowest, took)
			if got.Code >= 300 || took > atOnce {
				t.Errorf("%s %s: %d %.200s after %v", c.request.Method, c.request.Path, got.Code, got.Body, took)
			}
		}
	}
	t.Logf("the slowest answer took %v", slowest)
}

// TestSlowReaders reads a list on 880 HTTP/2 streams that take nothing, and over
// HTTP/1.1 connections that are not read: others read and write at once.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	a := startAllInOne(t, vocabulary.Platform())
	namespace := newNamespace(t, a.Client(t))
	greedy, modest := a.account(t, namespace, "greedy"), a.account(t, namespace, "modest")
	a.mayView(t, namespace, "greedy")
	for i := range 10 {
		large := configMap(fmt.Sprint("large", i), strings.Repeat("x", 100<<10))
		if _, err := a.Client(t).Resource(configMaps()).Namespace(namespace).Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list := "/api/v1/namespaces/" + namespace + "/configmaps"
	eventually(t, "the account may list", func() bool { return greedy.Ask(t, cluster.Request{Path: list}).Code == http.StatusOK })
	for range 4 {
		slow := newStreams(t, a.dial(t, "h2"), 0)
		for range 220 {
			slow.open(t, "GET", list, greedy.Token, false)
		}
	}
	for range 200 {
		conn := a.dial(t, "http/1.1")
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", list, greedy.Token); err != nil {
			t.Fatal(err)
		}
	}
	a.checkUndisturbed(t, modest, namespace)
	eventually(t, "stalled answers are ended", func() bool { return a.metric(t, `apiserver_slow_clients_total{transfer="answer"}`) > 0 })
	// Readers that continue to read are served.
	eventually(t, "the slow user is served", func() bool {
		return greedy.Ask(t, cluster.Request{Path: list}).Code == http.StatusOK
	})
}

// metric returns the value of one series.
func (a *allInOne) metric(t *testing.T, series string) float64 {
	t.Helper()
	for line := range strings.Lines(a.Ask(t, cluster.Request{Path: "/metrics"}).Body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// mayView lets a service account read a namespace.
func (a *allInOne) mayView(t *testing.T, namespace, account string) {
	t.Helper()
	group := a.Vocabulary.Group("rbac.authorization.")
	made := a.Ask(t, cluster.Request{Method: "POST", Path: "/apis/" + group + "/v1/namespaces/" + namespace + "/rolebindings",
		Body: `{"metadata":{"name":"view"},"roleRef":{"apiGroup":"` + group + `","kind":"ClusterRole","name":"view"},
			"subjects":[{"kind":"ServiceAccount","name":"` + account + `","namespace":"` + namespace + `"}]}`})
	if made.Code >= 300 {
		t.Fatal(made)
	}
}

// streams opens requests on one HTTP/2 connection and does not read the responses.
type streams struct {
	framer *http2.Framer
	head   bytes.Buffer
	hpack  *hpack.Encoder
	next   uint32
}

// newStreams begins an HTTP/2 connection that allows window bytes for each answer.
func newStreams(t *testing.T, conn net.Conn, window uint32) *streams {
	t.Helper()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	s := &streams{framer: http2.NewFramer(conn, conn), next: 1}
	s.hpack = hpack.NewEncoder(&s.head)
	if err := s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // frames are read, and windows never opened
	return s
}

// open sends a request, of whose body one byte comes and no more.
func (s *streams) open(t *testing.T, method, path, token string, body bool) {
	t.Helper()
	s.head.Reset()
	for _, f := range []hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "x"},
		{Name: ":path", Value: path}, {Name: "authorization", Value: "Bearer " + token}, {Name: "content-type", Value: "application/json"}} {
		_ = s.hpack.WriteField(f)
	}
	err := s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.next, BlockFragment: s.head.Bytes(), EndHeaders: true, EndStream: !body})
	if body {
		err = errors.Join(err, s.framer.WriteData(s.next, false, []byte("{")))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.next += 2
}

// TestHeadAnswersAtOnce requests a watch with HEAD: the response ends at once, and the
// connection can be used for the next request.
func TestHeadAnswersAtOnce(t *testing.T) {
	t.Parallel()
	a := startAllInOne(t, vocabulary.Platform())
	for _, path := range []string{"/api/v1/namespaces?watch=1", "/api/v1/namespaces", "/api/v1/watch/namespaces", "/api/v1/namespaces/default", "/livez"} {
		began := time.Now()
		got := a.Ask(t, cluster.Request{Method: http.MethodHead, Path: path})
		took := time.Since(began)
		if got.Code != http.StatusOK || got.Body != "" || took > patience { // the watch would take half an hour
			t.Errorf("HEAD %s: %d %q after %v", path, got.Code, got.Body, took)
		}
		t.Logf("HEAD %s: after %v", path, took)
	}
}

// TestShutdownDelay stops the process while a client writes objects over persistent
// connections: /readyz fails at once, and no write fails during the delay.
func TestShutdownDelay(t *testing.T) {
	t.Parallel()
	a := startAllInOne(t, vocabulary.Platform(), "--shutdown-delay-duration=10s")
	namespace := newNamespace(t, a.Client(t))
	path := "/api/v1/namespaces/" + namespace + "/configmaps"
	writers := map[string]*http.Client{"http/1.1": a.client(t, "http/1.1"), "h2": a.client(t, "h2")}
	for _, writer := range writers {
		a.writeOnce(t, writer, path)
	}
	began := time.Now()
	if err := a.process.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is not ready", func() bool { return a.Ask(t, cluster.Request{Path: "/readyz"}).Code == 500 })
	took := time.Since(began)
	if t.Logf("/readyz turned after %v", took); took > 5*time.Second { // after the delay nobody would be answered
		t.Error("that is not at once")
	}
	for time.Since(began) < 6*time.Second {
		for protocol, writer := range writers {
			if closing := a.writeOnce(t, writer, path); protocol == "http/1.1" && !closing {
				t.Error("HTTP/1.1: the answer does not say that the connection closes")
			}
		}
		if got := a.Ask(t, cluster.Request{Path: "/livez"}); got.Code != 200 {
			t.Errorf("/livez: %d", got.Code)
		}
	}
	select {
	case <-a.process.ended:
	case <-time.After(patience):
		t.Fatal("the process does not end")
	}
	if status := a.process.cmd.ProcessState.ExitCode(); status != 0 {
		t.Errorf("exit status %d: %s", status, a.process.tail())
	}
}

// client returns a client that keeps its connections, of one version of HTTP.
func (a *allInOne) client(t *testing.T, protocol string) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CA)
	transport := &http.Transport{ForceAttemptHTTP2: protocol == "h2", TLSClientConfig: &tls.Config{RootCAs: roots, NextProtos: []string{protocol}}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// writeOnce creates an object; closing reports whether the server is about to close
// the connection.
func (a *allInOne) writeOnce(t *testing.T, client *http.Client, path string) (closing bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL+path, strings.NewReader(`{"metadata":{"generateName":"w-"}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+a.Token)
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return false
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode >= 300 {
		t.Errorf("%s: %s %v", response.Proto, response.Status, err)
	}
	return response.Close
}
