package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestBackupOfOverrides saves a suite with two etcds in one backup, and restores first that of Events alone,
// then the main one. Each time, clients of what was restored list again, and those of the other etcd
// lose nothing.
func TestBackupOfOverrides(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts nine processes")
	}
	s := newSuite(t, vocabulary.K8s())
	override := s.startOverride(t)
	d := &overridesDrill{restoration: restorationOf(t, s, override)}
	d.maps, d.events = d.follow(t, configMaps()), d.follow(t, schema.GroupVersionResource{Version: "v1", Resource: "events"})
	d.write(t, "POST", configMapPath, "", mapNamed("kept"))
	ok(t, d.Cluster, eventNamed("kept"))

	backup, files := filepath.Join(t.TempDir(), "backup"), d.issue(t, "checker", "checker")
	create := []string{"backup", "create", backup, "--etcd-servers=https://" + d.addresses["etcd"],
		"--etcd-cafile=" + files.CA, "--etcd-certfile=" + files.Cert, "--etcd-keyfile=" + files.Key}
	eventually(t, "a backup without Events is refused", func() bool { // once the hub that publishes has recorded them
		out, err := exec.Command(portico(t), create...).CombinedOutput()
		if err == nil {
			_ = os.RemoveAll(backup)
		}
		return err != nil && strings.Contains(string(out), "with '"+override+"'")
	})
	manageBackup(t, append(create, override)...)
	manageBackup(t, "backup", "verify", backup)
	d.write(t, "POST", configMapPath, "", mapNamed("ghost"))
	ok(t, d.Cluster, eventNamed("ghost"))
	eventually(t, "the informers have seen what is lost later", func() bool { return d.maps.has("ghost") && d.events.has("ghost") })

	restored := func(name string, args ...string) string {
		data := filepath.Join(t.TempDir(), name)
		manageBackup(t, append([]string{"restore", backup, "--etcd-data-dir=" + data, "--initial-cluster=default=http://127.0.0.1:0"}, args...)...)
		return filepath.Join(data, "default")
	}
	d.restoreEvents(t, restored("events", "--override=events"))
	d.restoreMain(t, restored("main"))
}

// overridesDrill is a suite with an etcd of Events, and informers that go on through everything.
type overridesDrill struct {
	*restoration
	maps, events followedCounted
}

// followedCounted is an informer that counts its lists.
type followedCounted struct {
	lasting
	requests *requests
}

func (d *overridesDrill) follow(t *testing.T, of schema.GroupVersionResource) followedCounted {
	t.Helper()
	r := &requests{}
	return followedCounted{followed(t, dynamic.NewForConfigOrDie(r.count(d.Config())), of), r}
}

// restoreEvents restores the etcd of Events alone, while ConfigMaps are written.
func (d *overridesDrill) restoreEvents(t *testing.T, data string) {
	t.Helper()
	maps, events := d.history(t, configMapPath), d.history(t, eventsPath)
	lists := d.maps.requests.sum()
	d.processes[ofEvents].stop(t)
	d.write(t, "POST", configMapPath, "", mapNamed("meanwhile"))
	d.overrideData = data
	d.runOverride()
	d.mustLose(t, events)
	eventually(t, "Events are as they were saved", func() bool {
		return d.code(t, eventsPath, "kept") == http.StatusOK && d.code(t, eventsPath, "ghost") == http.StatusNotFound
	})
	ok(t, d.Cluster, eventNamed("new"))
	d.write(t, "POST", configMapPath, "", mapNamed("after"))
	within(t, informerPatience, "the informer of Events shows what was restored", func() bool {
		return d.events.has("kept") && d.events.has("new") && !d.events.has("ghost")
	})
	eventually(t, "the informer of ConfigMaps has missed nothing", func() bool {
		return d.maps.has("kept") && d.maps.has("ghost") && d.maps.has("meanwhile") && d.maps.has("after")
	})
	if more := d.maps.requests.sum() - lists; more > 0 {
		t.Errorf("the informer of ConfigMaps has listed %d times again", more)
	}
	d.mustGoOn(t, maps, "after")
}

// restoreMain restores the main etcd alone.
func (d *overridesDrill) restoreMain(t *testing.T, data string) {
	t.Helper()
	maps, events := d.history(t, configMapPath), d.history(t, eventsPath)
	d.stopEtcd(t)
	d.startEtcd(t, data, "")
	d.mustLose(t, maps)
	eventually(t, "ConfigMaps are as they were saved", func() bool {
		return d.code(t, "/readyz", "") == http.StatusOK && d.code(t, configMapPath, "kept") == http.StatusOK && d.code(t, configMapPath, "meanwhile") == http.StatusNotFound
	})
	d.write(t, "POST", configMapPath, "", mapNamed("new"))
	ok(t, d.Cluster, eventNamed("last"))
	within(t, informerPatience, "the informer of ConfigMaps shows what was restored", func() bool {
		return d.maps.has("kept") && d.maps.has("new") && !d.maps.has("ghost") && !d.maps.has("meanwhile") && !d.maps.has("after")
	})
	within(t, informerPatience, "the informer of Events has missed nothing", func() bool {
		return d.events.has("kept") && d.events.has("new") && d.events.has("last") && !d.events.has("ghost")
	})
	d.mustGoOn(t, events, "last")
}

// followedHistory is a collection at a resourceVersion, and a watch since then.
type followedHistory struct {
	path, version string
	failed        <-chan string // the watch ended with an error
}

func (d *overridesDrill) history(t *testing.T, path string) followedHistory {
	t.Helper()
	version := d.version(t, path+"?limit=1")
	return followedHistory{path, version, d.watch(t, path, version, func(kind string, _ []byte) bool { return kind == "ERROR" })}
}

// mustLose: the watch ends with 410, nothing can be read at the resourceVersion, and later ones are larger.
func (d *overridesDrill) mustLose(t *testing.T, h followedHistory) {
	t.Helper()
	select {
	case last := <-h.failed:
		if !strings.Contains(last, `"code":410`) {
			t.Errorf("the watch of %s ends with %s", h.path, last)
		}
	case <-time.After(patience):
		t.Errorf("the watch of %s goes on", h.path)
	}
	eventually(t, "a list of the new history", func() bool { return d.code(t, h.path, "") == http.StatusOK })
	if now := d.version(t, h.path+"?limit=1"); versionNumber(t, now) <= versionNumber(t, h.version) {
		t.Errorf("%s is at %s after the restore, and was at %s before", h.path, now, h.version)
	}
	for _, query := range []string{"?watch=1&timeoutSeconds=5&resourceVersion=", "?resourceVersionMatch=Exact&resourceVersion="} {
		if a := d.Ask(t, cluster.Request{Path: h.path + query + h.version}); !strings.Contains(a.Body, `"code":410`) {
			t.Errorf("%s%s%s: %d %.300s, want 410", h.path, query, h.version, a.Code, a.Body)
		}
	}
}

// mustGoOn: a watch since the resourceVersion delivers, and the one from before has not failed.
func (d *overridesDrill) mustGoOn(t *testing.T, h followedHistory, last string) {
	t.Helper()
	seen := d.watch(t, h.path, h.version, func(kind string, object []byte) bool {
		return kind == "ERROR" || kind == "ADDED" && strings.Contains(string(object), `"name":"`+last+`"`)
	})
	select {
	case event := <-seen:
		if strings.Contains(event, "ERROR") {
			t.Errorf("a watch of %s since %s: %s", h.path, h.version, event)
		}
	case <-time.After(patience):
		t.Errorf("a watch of %s since %s does not deliver", h.path, h.version)
	}
	select {
	case event := <-h.failed:
		t.Errorf("the watch of %s from before the restore of another etcd: %s", h.path, event)
	default:
	}
}

// code returns the status of a request for an object, or for a path without a name.
func (d *overridesDrill) code(t *testing.T, path, name string) int {
	t.Helper()
	return d.Ask(t, cluster.Request{Path: strings.TrimSuffix(path+"/"+name, "/")}).Code
}
