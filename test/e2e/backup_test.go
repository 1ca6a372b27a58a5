package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestBackup saves a suite that runs and is written to, writes more, and restores it: what
// was saved is there, what came later is not, and no client sees a resourceVersion that
// it has seen with another meaning.
func TestBackup(t *testing.T) {
	t.Parallel()
	t.Run("all-in-one", func(t *testing.T) {
		t.Parallel()
		a := startAllInOne(t, vocabulary.K8s())
		d := &drill{Cluster: a.Cluster, source: []string{"--data-dir=" + a.Dir}}
		d.run(t, func(backup string) {
			a.process.stop(t)
			a.Dir = filepath.Join(t.TempDir(), "restored")
			manageBackup(t, "restore", backup, "--data-dir="+a.Dir)
			a.start(t)
		})
	})
	t.Run("processes, which go on running", func(t *testing.T) {
		if testing.Short() {
			t.Skip("starts eight processes")
		}
		t.Parallel()
		r := newRestoration(t)
		files := r.issue(t, "checker", "checker")
		d := &drill{Cluster: r.Cluster, source: []string{"--etcd-servers=https://" + r.addresses["etcd"],
			"--etcd-cafile=" + files.CA, "--etcd-certfile=" + files.Cert, "--etcd-keyfile=" + files.Key}}
		d.run(t, func(backup string) {
			r.stopEtcd(t)
			data := filepath.Join(t.TempDir(), "restored")
			manageBackup(t, "restore", backup, "--etcd-data-dir="+data, "--initial-cluster=default=http://127.0.0.1:0")
			r.startEtcd(t, filepath.Join(data, "default"), "")
		})
	})
}

// manageBackup runs a command that has to succeed.
func manageBackup(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command(portico(t), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	t.Logf("%s", out)
}

// drill is one backup and its restoration.
type drill struct {
	*cluster.Cluster
	source []string // flags that say where the suite is
}

func (d *drill) run(t *testing.T, restore func(backup string)) {
	maps := followed(t, d.client(), configMaps())
	fillThings(t, d.Cluster, 20)
	ok(t, d.Cluster, post(configMapPath, mapNamed("kept")))
	saved, _ := listed(t, d.Cluster)

	backup := filepath.Join(t.TempDir(), "backup")
	acknowledged := d.writeMeanwhile(t, func() { manageBackup(t, append([]string{"backup", "create", backup}, d.source...)...) })
	manageBackup(t, "backup", "verify", backup)

	// What the restore will undo.
	patch := cluster.Request{Method: http.MethodPatch, Path: configMapPath + "/kept", Type: mergePatch, Body: `{"data":{"state":"second"}}`}
	ok(t, d.Cluster, patch)
	ok(t, d.Cluster, cluster.Request{Method: http.MethodDelete, Path: things + "/t001"})
	for i := range 20 {
		ok(t, d.Cluster, post(configMapPath, mapNamed(fmt.Sprint("ghost", i))))
	}
	_, last := listed(t, d.Cluster)
	eventually(t, "the informer has seen what is lost later", func() bool { return maps.has("ghost19") })

	restore(backup)
	eventually(t, "what was saved is there", func() bool { return d.state("kept") == "first" })
	eventually(t, "custom objects are as they were saved", func() bool {
		a := d.Ask(t, cluster.Request{Path: things})
		return a.Code == http.StatusOK && strings.Contains(a.Body, `"t001"`)
	})
	after, version := listed(t, d.Cluster)
	if !reflect.DeepEqual(after, saved) {
		t.Errorf("%d custom objects, and %d were saved", len(after), len(saved))
	}
	for _, name := range acknowledged {
		if d.state(name) != "first" {
			t.Errorf("%s was acknowledged before the backup and is lost", name)
		}
	}
	if versionNumber(t, last) >= versionNumber(t, version) {
		t.Errorf("a list is of revision %s, and before the restore there was %s", version, last)
	}
	d.checkVersions(t, last)
	within(t, informerPatience, "the informer shows what was restored", func() bool {
		return maps.has("kept") && maps.has("new") && !maps.has("ghost0") && !maps.has("ghost19")
	})
}

// checkVersions uses the newest resourceVersion of the lost history.
func (d *drill) checkVersions(t *testing.T, last string) {
	t.Helper()
	var made struct {
		Metadata struct{ ResourceVersion string }
	}
	ok(t, d.Cluster, post(configMapPath, mapNamed("new"))).Decode(t, &made)
	if versionNumber(t, made.Metadata.ResourceVersion) <= versionNumber(t, last) {
		t.Errorf("an object is written at %s, and before the restore there was %s", made.Metadata.ResourceVersion, last)
	}
	for _, query := range []string{"?watch=1&timeoutSeconds=5&resourceVersion=", "?resourceVersionMatch=Exact&resourceVersion="} {
		if a := d.Ask(t, cluster.Request{Path: configMapPath + query + last}); !strings.Contains(a.Body, `"code":410`) {
			t.Errorf("%s%s: %d %.300s, want 410", query, last, a.Code, a.Body)
		}
	}
	stale := cluster.Request{Method: http.MethodPatch, Path: configMapPath + "/kept", Type: mergePatch,
		Body: fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"data":{"state":"stale"}}`, last)}
	if a := d.Ask(t, stale); a.Code != http.StatusConflict {
		t.Errorf("an update with a version of the lost history: %d %.300s, want 409", a.Code, a.Body)
	}
}

// writeMeanwhile creates objects while a function runs, and returns the names of those that
// were acknowledged before it began.
func (d *drill) writeMeanwhile(t *testing.T, do func()) (before []string) {
	t.Helper()
	for i := range 20 {
		name := fmt.Sprint("before", i)
		ok(t, d.Cluster, post(configMapPath, mapNamed(name)))
		before = append(before, name)
	}
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			_, _ = d.Do(ctx, post(configMapPath, mapNamed(fmt.Sprint("during", n))))
		}
		written <- n
	}()
	do()
	stop()
	if n := <-written; n == 0 {
		t.Error("nothing was written meanwhile")
	}
	return before
}

// state returns what an object says; empty when it is not there.
func (d *drill) state(name string) string {
	object, err := d.client().Resource(configMaps()).Namespace("default").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	state, _, _ := unstructured.NestedString(object.Object, "data", "state")
	return state
}

func (d *drill) client() dynamic.Interface { return dynamic.NewForConfigOrDie(d.Config()) }

// lasting is an informer that goes on through everything.
type lasting struct{ store cache.Store }

func (f lasting) has(name string) bool {
	_, found, _ := f.store.GetByKey("default/" + name)
	return found
}

// followed starts an informer.
func followed(t *testing.T, client dynamic.Interface, of schema.GroupVersionResource) lasting {
	t.Helper()
	informer := dynamicinformer.NewFilteredDynamicInformer(client, of, "default", 0, cache.Indexers{}, nil).Informer()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go informer.RunWithContext(ctx)
	return lasting{informer.GetStore()}
}

func versionNumber(t *testing.T, version string) int64 {
	t.Helper()
	revision, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}
