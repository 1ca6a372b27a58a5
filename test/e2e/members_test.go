package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/vocabulary"
)

// members are three members of etcd, with mutual TLS to their clients and to each other.
type members struct {
	*suite
	names   []string
	peers   map[string]string // addresses, by name
	dir     string            // has the data folder of each
	cluster string            // names and peer URLs
}

// startMembers replaces the only etcd of a suite by three members.
func startMembers(t *testing.T, s *suite) *members {
	t.Helper()
	s.processes["etcd"].stop(t)
	delete(s.replicas, "etcd")
	m := &members{suite: s, names: []string{"etcd-1", "etcd-2", "etcd-3"}, peers: map[string]string{}, dir: t.TempDir()}
	var all []string
	for _, name := range m.names {
		s.add(t, "etcd", name)
		var err error
		if m.peers[name], err = loopback.FreeAddress(); err != nil {
			t.Fatal(err)
		}
		all = append(all, name+"="+m.url(name))
	}
	m.cluster = strings.Join(all, ",")
	for _, name := range m.names {
		m.startMember(t, name)
	}
	return m
}

func (m *members) url(name string) string { return "https://" + m.peers[name] }

func (m *members) data(name string) string { return filepath.Join(m.dir, name) }

// startMember starts a member with the flags of the chart, and others that are given.
func (m *members) startMember(t *testing.T, name string, args ...string) {
	t.Helper()
	files := m.issue(t, name, name, "127.0.0.1")
	m.processes[name] = spawn(t, t.TempDir(), filepath.Join(m.bin, "etcd"), append([]string{"-name", name, "-dir", m.data(name), "-token", "portico",
		"-address", m.addresses[name], "-peer", m.peers[name], "-cluster", m.cluster, "-ca", files.CA, "-cert", files.Cert, "-key", files.Key}, args...)...)
}

// flags are those of a client of the members.
func (m *members) flags(t *testing.T) []string {
	t.Helper()
	files := m.issue(t, "checker", "checker")
	return []string{"--etcd-servers=https://" + strings.ReplaceAll(m.reach("checker", "etcd"), ",", ",https://"),
		"--etcd-cafile=" + files.CA, "--etcd-certfile=" + files.Cert, "--etcd-keyfile=" + files.Key}
}

// TestRestoredMembers is the drill of a suite with three members: all are stopped, each gets new data in the place
// of its old ones, and the rest of the suite goes on running.
func TestRestoredMembers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts eleven processes")
	}
	m := startMembers(t, newSuite(t, vocabulary.K8s()))
	r := restorationOf(t, m.suite)
	d := &drill{Cluster: r.Cluster, source: m.flags(t)}
	d.run(t, func(backup string) {
		for _, name := range m.names {
			m.processes[name].stop(t)
		}
		at := time.Now().Format(time.RFC3339)
		for _, name := range m.names {
			manageBackup(t, "restore", backup, "--etcd-data-dir="+m.data(name), "--member="+name, "--initial-cluster="+m.cluster, "--at="+at, "--replace")
		}
		for _, name := range m.names {
			m.startMember(t, name)
		}
	})
	for _, name := range m.names {
		m.mustFollow(t, name)
	}
	if kept, err := filepath.Glob(filepath.Join(m.dir, "*-before-*", "member")); err != nil || len(kept) != len(m.names) {
		t.Errorf("the old data are in %v, %v", kept, err)
	}
}

// mustFollow: a member answers as soon as it has what all others have.
func (m *members) mustFollow(t *testing.T, name string) {
	t.Helper()
	client := m.etcdClient(t, name)
	within(t, patience, name+" follows", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client.Get(ctx, "/")
		return err == nil
	})
}

// TestReplacedMember loses one member of three with its data, and replaces it as docs/operations/backup.md describes it, while
// clients write and watch: they miss nothing. Then the new member is needed for the quorum.
func TestReplacedMember(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts eleven processes")
	}
	m := startMembers(t, newSuite(t, vocabulary.K8s()))
	r := restorationOf(t, m.suite)
	d := &drill{Cluster: r.Cluster}
	w := d.keepWriting(t)
	maps := followed(t, d.client(), configMaps())
	w.mustGoOn(t, "before")

	const lost, other = "etcd-2", "etcd-1"
	m.processes[lost].kill()
	if err := os.RemoveAll(m.data(lost)); err != nil {
		t.Fatal(err)
	}
	w.mustGoOn(t, "without the member")

	// It is still known, and does not begin anew.
	m.startMember(t, lost)
	within(t, patience, "a known member without data ends", m.processes[lost].hasEnded)
	if log := m.processes[lost].log(); !strings.Contains(log, "already been bootstrapped") {
		t.Errorf("it has ended with %s", log)
	}
	if err := os.RemoveAll(m.data(lost)); err != nil {
		t.Fatal(err)
	}

	m.readmit(t, lost)
	m.startMember(t, lost, "-state", "existing")
	m.mustFollow(t, lost)
	w.mustGoOn(t, "with the new member")

	// Quorum needs the new member now.
	m.processes[other].kill()
	w.mustGoOn(t, "with the new member and one other")
	m.startMember(t, other)
	m.mustFollow(t, other)

	written := w.end()
	within(t, informerPatience, "the informer has missed nothing", func() bool {
		return !slices.ContainsFunc(written, func(name string) bool { return !maps.has(name) })
	})
	for _, name := range written {
		if d.state(name) != "first" {
			t.Errorf("%s was acknowledged and is lost", name)
		}
	}
}

// readmit removes a member from the cluster and adds it again, as etcdctl member remove and member add do.
func (m *members) readmit(t *testing.T, name string) {
	t.Helper()
	client := m.etcdClient(t, "etcd-3")
	list, err := client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list.Members {
		if one.Name != name {
			continue
		}
		if _, err := client.MemberRemove(t.Context(), one.ID); err != nil {
			t.Fatal(err)
		}
	}
	// Right after another change etcd may refuse it for a moment.
	within(t, patience, "the member is added", func() bool {
		_, err = client.MemberAdd(t.Context(), []string{m.url(name)})
		return err == nil
	})
	if list, err = client.MemberList(t.Context(), clientv3.WithSerializable()); err != nil || len(list.Members) != len(m.names) {
		t.Fatalf("%v, %v", list, err)
	}
}

// writing creates objects one after the other.
type writing struct {
	stop  context.CancelFunc
	ended sync.WaitGroup
	mu    sync.Mutex
	names []string // that were acknowledged
}

func (d *drill) keepWriting(t *testing.T) *writing {
	t.Helper()
	w := &writing{}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(t.Context())
	t.Cleanup(func() { w.end() })
	w.ended.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			name := fmt.Sprint("written", n)
			if a, err := d.Do(ctx, post(configMapPath, mapNamed(name))); err == nil && a.Code == http.StatusCreated {
				w.mu.Lock()
				w.names = append(w.names, name)
				w.mu.Unlock()
			}
		}
	})
	return w
}

func (w *writing) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.names)
}

// mustGoOn waits for more writes that are acknowledged.
func (w *writing) mustGoOn(t *testing.T, what string) {
	t.Helper()
	before := w.count()
	within(t, patience, "writes go on "+what, func() bool { return w.count() >= before+20 })
}

// end stops and returns the names of what was acknowledged.
func (w *writing) end() []string {
	w.stop()
	w.ended.Wait()
	return w.names
}
