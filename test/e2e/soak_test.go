package e2e

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// soakRounds is how often each kind of change is made, as `make soak` sets it.
var soakRounds = flag.Int("rounds", 60, "how often TestSoak makes each kind of change; 1,000 in make soak")

// Bounds of what may be left of the rounds of one kind of change.
const (
	// soakHeap is live memory. The caches of a small process fill up to a few MiB; what a definition holds for ever was
	// 0.6 MiB for each change.
	soakHeap = 6 << 20
	// soakOthers are goroutines and descriptors: those of connections that are still open.
	soakOthers = 12
)

// soak is a process on which one kind of change is made again and again.
type soak struct {
	*cluster.Cluster
	t *testing.T
}

// held is what a process holds after a collection.
type held struct{ heap, goroutines, descriptors int64 }

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
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "go_goroutines":
			h.goroutines = int64(n)
		case "process_open_fds":
			h.descriptors = int64(n)
		}
	}
	return h
}

// least returns the least of each that the process holds for a time, while background work ends, or until that is good.
func (s *soak) least(d time.Duration, good func(held) bool) (least held) {
	least = s.now()
	for deadline := time.Now().Add(d); !good(least) && time.Now().Before(deadline); {
		<-time.After(500 * time.Millisecond)
		now := s.now()
		least = held{min(least.heap, now.heap), min(least.goroutines, now.goroutines), min(least.descriptors, now.descriptors)}
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
	a := startAllInOne(t, vocabulary.K8s(), "--profiling", "--watch-history=2s", "--watch-history-bytes=65536", "--feed-bytes=65536", "--etcd-compaction-interval=1s",
		"--audit-log-path="+t.TempDir()+"/audit.log", "--audit-log-maxsize=1", "--audit-log-maxbackup=2")
	s := &soak{Cluster: a.Cluster, t: t}
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
			fits := func(h held) bool {
				return h.heap-before.heap <= soakHeap && h.goroutines-before.goroutines <= soakOthers && h.descriptors-before.descriptors <= soakOthers
			}
			after := s.least(patience, fits)
			t.Logf("%d rounds: %+d KiB, %+d goroutines, %+d descriptors", *soakRounds, (after.heap-before.heap)>>10, after.goroutines-before.goroutines, after.descriptors-before.descriptors)
			if !fits(after) {
				t.Errorf("it holds more after %d rounds: %+v, before %+v", *soakRounds, after, before)
			}
		})
	}
}
