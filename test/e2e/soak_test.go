package e2e

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// soakRounds is how often each kind of change is made, as `make soak` sets it.
var soakRounds = flag.Int("rounds", 20, "how often TestSoak makes each kind of change; 1,000 in make soak")

// Bounds of what may be left of the rounds of one kind of change.
const (
	// soakHeap is live memory. The caches of a small process fill up to a few MiB; what a definition holds for ever was
	// 0.6 MiB for each change.
	soakHeap = 6 << 20
	// soakOthers are goroutines and descriptors: those of connections that are still open.
	soakOthers = 12
	// soakDatabase is what etcd stores: changes since its last compaction, and pages that it uses in part.
	soakDatabase = 2 << 20
	// soakFiles are further segments of etcd's log.
	soakFiles = 3
	// soakSubscriptions and soakObjects are of what the suite itself does meanwhile.
	soakSubscriptions, soakObjects = 6, 6
)

// soak is a process on which one kind of change is made again and again.
type soak struct {
	*cluster.Cluster
	t    *testing.T
	pod  *placed // on a node that runs commands
	logs string  // the folder of the audit log
}

// held is what a process holds after a collection: in memory, in its database, on the bus and on disk.
type held struct{ heap, goroutines, descriptors, database, objects, subscriptions, files int64 }

// each returns the fields of two, as pairs.
func (h *held) each(of *held) [][2]*int64 {
	return [][2]*int64{{&h.heap, &of.heap}, {&h.goroutines, &of.goroutines}, {&h.descriptors, &of.descriptors}, {&h.database, &of.database},
		{&h.objects, &of.objects}, {&h.subscriptions, &of.subscriptions}, {&h.files, &of.files}}
}

// since returns what it holds more than before.
func (h held) since(before held) held {
	for _, pair := range h.each(&before) {
		*pair[0] -= *pair[1]
	}
	return h
}

// fits reports whether it is within the bounds.
func (h held) fits() bool {
	return h.heap <= soakHeap && h.goroutines <= soakOthers && h.descriptors <= soakOthers && h.database <= soakDatabase &&
		h.objects <= soakObjects && h.subscriptions <= soakSubscriptions && h.files <= soakFiles
}

var liveHeap = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)`)

// now returns what the process holds.
func (s *soak) now() (h held) {
	s.t.Helper()
	for range 2 { // the first collection runs finalizers
		found := liveHeap.FindStringSubmatch(ok(s.t, s.Cluster, cluster.Request{Path: "/debug/pprof/heap?gc=1&debug=1"}).Body)
		if found == nil {
			s.t.Fatal("no heap in the profile")
		}
		h.heap, _ = strconv.ParseInt(found[1], 10, 64)
	}
	metrics := ok(s.t, s.Cluster, cluster.Request{Path: "/metrics"}).Body
	for lines := bufio.NewScanner(strings.NewReader(metrics)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "go_goroutines":
			h.goroutines = int64(n)
		case "process_open_fds":
			h.descriptors = int64(n)
		case "portico_etcd_database_used_bytes":
			h.database = int64(n)
		case "portico_store_mirror_objects":
			h.objects = int64(n)
		case "portico_bus_subscriptions":
			h.subscriptions = int64(n)
		}
	}
	for _, dir := range []string{s.Dir, s.logs} {
		_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { // files that end meanwhile do not count
			if err == nil && !e.IsDir() {
				h.files++
			}
			return nil
		})
	}
	if h.database == 0 || h.objects == 0 || h.subscriptions == 0 || h.files == 0 {
		s.t.Fatalf("what the process holds is not known: %+v", h)
	}
	return h
}

// least returns the least of each that the process holds for a time, while background work ends, or until that is good. The
// time begins again whenever there are fewer objects: a thousand namespaces end one after the other.
func (s *soak) least(d time.Duration, good func(held) bool) (least held) {
	least = s.now()
	for deadline := time.Now().Add(d); !good(least) && time.Now().Before(deadline); {
		<-time.After(500 * time.Millisecond)
		now := s.now()
		if now.objects < least.objects {
			deadline = time.Now().Add(d)
		}
		for _, pair := range least.each(&now) {
			*pair[0] = min(*pair[0], *pair[1])
		}
	}
	return least
}

// made creates an object and returns its path; one that exists is left.
func (s *soak) made(path, name, object string) string {
	s.t.Helper()
	if a := s.Ask(s.t, post(path, object)); a.Code >= 300 && a.Code != http.StatusConflict {
		s.t.Fatalf("POST %s: %d %s", path, a.Code, a.Body)
	}
	return path + "/" + name
}

// changed changes an annotation of an object.
func (s *soak) changed(path string, i int) {
	s.t.Helper()
	ok(s.t, s.Cluster, cluster.Request{Method: http.MethodPatch, Path: path, Type: "application/merge-patch+json",
		Body: fmt.Sprintf(`{"metadata":{"annotations":{"example.com/round":"%d"}}}`, i)})
}

// comesAndGoes returns a kind of change that creates and deletes an object.
func comesAndGoes(path, object string) func(*soak, int) {
	return func(s *soak, i int) {
		name := fmt.Sprintf("soak-%d", i)
		at := s.made(path, name, strings.ReplaceAll(object, "NAME", name))
		ok(s.t, s.Cluster, cluster.Request{Method: http.MethodDelete, Path: at})
	}
}

// kept returns a kind of change that changes one object.
func kept(path, object string) func(*soak, int) {
	return func(s *soak, i int) { s.changed(s.made(path, "soak", strings.ReplaceAll(object, "NAME", "soak")), i) }
}

// soakDefinition is a definition with a large schema, of a kind of its own for each name.
func soakDefinition(name, description string) string {
	fields := make([]string, 60)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"field%d":{"type":"string","description":"Field %d of %s."}`, i, i, description)
	}
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]ss.soak.example"},"spec":{"group":"soak.example","scope":"Namespaced",`+
		`"names":{"plural":"%[1]ss","singular":"%[1]s","kind":"%[2]s","listKind":"%[2]sList"},"versions":[{"name":"v1","served":true,"storage":true,`+
		`"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%[3]s}}}}}}]}}`, name, strings.ToUpper(name[:1])+name[1:], strings.Join(fields, ","))
}

// attached connects to a command in the pod that repeats what it reads, and waits for its output. It ends the input, or closes
// the connection while the command runs.
func (s *soak) attached(subresource, input string, cut bool) {
	s.t.Helper()
	query := "?container=main&stdin=true&stdout=true"
	if subresource == "exec" {
		query += "&command=cat"
	}
	executor, err := remotecommand.NewWebSocketExecutor(s.Config(), http.MethodGet, s.Config().Host+s.pod.path("p/"+subresource+query))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	stdin, writer := io.Pipe()
	reader, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout})
		_ = stdout.CloseWithError(io.EOF)
		ended <- err
	}()
	go func() { _, _ = io.WriteString(writer, input+"\n") }() // the reader sees whether it arrives
	lines, found := bufio.NewScanner(reader), false
	for !found && lines.Scan() { // an attached one also says what it is
		found = lines.Text() == input
	}
	if cut {
		cancel()
	}
	_ = writer.Close()
	if _ = reader.Close(); !found {
		s.t.Fatalf("%s does not run: %v", subresource, <-ended)
	}
	if err := <-ended; !cut && err != nil {
		s.t.Fatalf("%s: %v", subresource, err)
	}
}

const (
	soakNamespace = "/api/v1/namespaces/default"
	soakWebhook   = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"NAME"},"webhooks":[{"name":"a.example.com","admissionReviewVersions":["v1"],` +
		`"sideEffects":"None","failurePolicy":"Ignore","rules":[{"apiGroups":["none.example"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["things"]}],"clientConfig":{"url":"https://127.0.0.1:1/"}}]}`
	soakPolicy = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"NAME"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["none.example"],` +
		`"apiVersions":["v1"],"operations":["CREATE"],"resources":["things"]}]},"validations":[{"expression":"object.metadata.name != 'NAME'"}]}}`
	soakExtension = `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.NAME.example"},"spec":{"group":"NAME.example","version":"v1","groupPriorityMinimum":100,"versionPriority":10,` +
		`"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"none"}}}`
)

// soakKinds are the kinds of changes. Each makes the change number i and leaves no more than the one before it.
func soakKinds() map[string]func(s *soak, i int) {
	return map[string]func(*soak, int){
		"definition that changes": func(s *soak, i int) {
			at := s.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "gadgets.soak.example", soakDefinition("gadget", "the first"))
			ok(s.t, s.Cluster, cluster.Request{Method: http.MethodPatch, Path: at, Type: "application/merge-patch+json",
				Body: fmt.Sprintf(`{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","description":"Version %d."}}}]}}`, i)})
			s.Ask(s.t, cluster.Request{Path: "/apis"})
			s.Ask(s.t, cluster.Request{Path: "/openapi/v3"})
		},
		"definition that comes and goes": func(s *soak, i int) {
			name := fmt.Sprintf("tool%d", i)
			at := s.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", name+"s.soak.example", soakDefinition(name, name))
			ok(s.t, s.Cluster, cluster.Request{Method: http.MethodDelete, Path: at})
		},
		"extension that comes and goes": func(s *soak, i int) {
			name := fmt.Sprintf("soak%d", i)
			at := s.made("/apis/apiregistration.k8s.io/v1/apiservices", "v1."+name+".example", strings.ReplaceAll(soakExtension, "NAME", name))
			ok(s.t, s.Cluster, cluster.Request{Method: http.MethodDelete, Path: at})
		},
		"webhook that changes":        kept("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", soakWebhook),
		"webhook that comes and goes": comesAndGoes("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", soakWebhook),
		"policy that changes":         kept("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", soakPolicy),
		"policy that comes and goes":  comesAndGoes("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", soakPolicy),
		"role": comesAndGoes("/apis/rbac.authorization.k8s.io/v1/clusterroles",
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"NAME"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`),
		"binding": comesAndGoes("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"NAME"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"NAME"}]}`),
		"namespace": comesAndGoes("/api/v1/namespaces", `{"metadata":{"name":"NAME"}}`),
		"account and its token": func(s *soak, i int) {
			name := fmt.Sprintf("soak-%d", i)
			at := s.made(soakNamespace+"/serviceaccounts", name, `{"metadata":{"name":"`+name+`"}}`)
			var token struct{ Status struct{ Token string } }
			ok(s.t, s.Cluster, post(at+"/token", `{}`)).Decode(s.t, &token)
			as := *s.Cluster
			as.Token = token.Status.Token
			as.Ask(s.t, cluster.Request{Path: soakNamespace + "/configmaps"})
			ok(s.t, s.Cluster, cluster.Request{Method: http.MethodDelete, Path: at})
		},
		"lease":    kept("/apis/coordination.k8s.io/v1/namespaces/default/leases", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"NAME"}}`),
		"service":  comesAndGoes(soakNamespace+"/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"NAME"},"spec":{"ports":[{"port":80}]}}`),
		"node":     comesAndGoes("/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"NAME"}}`),
		"priority": comesAndGoes("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", `{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"FlowSchema","metadata":{"name":"NAME"},"spec":{"priorityLevelConfiguration":{"name":"global-default"},"matchingPrecedence":9000}}`),
		"connection": func(s *soak, _ int) {
			as := s.WithoutConnections()
			as.Ask(s.t, cluster.Request{Path: "/healthz"})
			as.CloseConnections()
		},
		"watch": func(s *soak, i int) {
			ctx, cancel := context.WithCancel(s.t.Context())
			defer cancel()
			response, err := s.Send(ctx, cluster.Request{Path: fmt.Sprintf("%s/configmaps?watch=1&labelSelector=round%%3D%d", soakNamespace, i)})
			if err != nil {
				s.t.Fatal(err)
			}
			cancel()
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		},
		"exec in a pod that is not there": func(s *soak, i int) {
			s.Ask(s.t, cluster.Request{Method: http.MethodPost, Path: fmt.Sprintf("%s/pods/none-%d/exec?command=sh", soakNamespace, i)})
		},
		"connection to a command that ends":       func(s *soak, _ int) { s.attached("exec", "ends", false) },
		"connection to a command that is cut off": func(s *soak, i int) { s.attached([]string{"exec", "attach"}[i%2], "goes on", true) },
		"failed authentication": func(s *soak, i int) {
			as := *s.Cluster
			as.Token = fmt.Sprintf("wrong-%d", i)
			as.Ask(s.t, cluster.Request{Path: "/api"})
		},
		"users": func(s *soak, i int) {
			s.Ask(s.t, cluster.Request{Path: soakNamespace + "/pods", Header: http.Header{"Impersonate-User": {fmt.Sprintf("user-%d", i)}}})
		},
		"unknown paths": func(s *soak, i int) {
			s.Ask(s.t, cluster.Request{Path: fmt.Sprintf("/apis/none%d.example/v1/things", i)})
		},
		"invalid objects": func(s *soak, i int) {
			s.Ask(s.t, post(soakNamespace+"/configmaps", fmt.Sprintf(`{"metadata":{"name":"NOT-A-NAME-%d"}}`, i)))
		},
	}
}

// TestSoak makes each kind of change again and again: a process holds no more after many rounds than after a few. The
// history of watches is kept short, since it holds every change on purpose.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("makes thousands of changes")
	}
	besides(t)
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go logs each connection that is cut off
	node, flags := startNode(t)
	logs := t.TempDir()
	a := startAllInOne(t, vocabulary.K8s(), append(flags, "--profiling", "--watch-history=2s", "--watch-history-bytes=65536", "--feed-bytes=65536", "--etcd-compaction-interval=1s",
		"--audit-log-path="+filepath.Join(logs, "audit.log"), "--audit-log-maxsize=1", "--audit-log-maxbackup=2")...)
	s := &soak{Cluster: a.Cluster, t: t, logs: logs, pod: &placed{Cluster: a.Cluster, node: node, namespace: newNamespace(t, a.Client(t))}}
	s.pod.place(t, "n", "p", node.port)
	kinds := soakKinds()
	var names []string
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	warm := min(20, *soakRounds)
	for _, name := range names { // caches and pools fill
		for i := range warm {
			kinds[name](s, i)
		}
	}
	never := func(held) bool { return false }
	t.Logf("at first: %+v", s.least(5*time.Second, never))
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			s.t = t
			before := s.least(time.Second, never)
			for i := range *soakRounds {
				kinds[name](s, warm+i)
			}
			more := s.least(patience, func(h held) bool { return h.since(before).fits() }).since(before)
			t.Logf("%d rounds: %+d KiB, %+d goroutines, %+d descriptors, %+d KiB in etcd, %+d objects, %+d subscriptions, %+d files", *soakRounds,
				more.heap>>10, more.goroutines, more.descriptors, more.database>>10, more.objects, more.subscriptions, more.files)
			if !more.fits() {
				t.Errorf("it holds more after %d rounds: %+v, before %+v", *soakRounds, more, before)
			}
		})
	}
}
