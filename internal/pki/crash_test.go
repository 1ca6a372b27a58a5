//go:build unix

package pki

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/pki/files"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// changes are what the commands change, by name, and the folder whose files it replaces.
var changes = map[string]struct {
	folder string
	do     func(*PKI) error
}{
	"issue": {"authz", func(p *PKI) error { return p.Issue("authz", true) }},
	"renew": {"", func(p *PKI) error { _, _, err := p.Renew(100 * 24 * time.Hour); return err }},
	"complete": {"", func(p *PKI) error {
		for _, name := range []string{"frontdoor/kubelet.crt", "frontdoor/kubelet.key", "authorities/nodes.crt", "authorities/nodes.key", "node"} {
			if err := os.RemoveAll(p.path(name)); err != nil {
				return err
			}
		}
		_, err := p.Complete()
		return err
	}},
	"admin": {"admin", func(p *PKI) error { return p.Issue("admin", true) }},
	"update": {"", func(p *PKI) error {
		site := testSite()
		site.Server, site.NATSServers = "https://new.example.com", []string{"nats-1", "nats-2", "nats-3"}
		_, err := p.UpdateSite(site)
		return err
	}},
}

// TestMain runs a change in a process of its own that kills itself before a change of the file system.
func TestMain(m *testing.M) {
	name := os.Getenv("PORTICO_TEST_CHANGE")
	if name == "" {
		os.Exit(m.Run())
	}
	kill, err := strconv.Atoi(os.Getenv("PORTICO_TEST_KILL"))
	if err != nil {
		panic(err)
	}
	p, err := Edit(os.Getenv("PORTICO_TEST_DIR"))
	if err != nil {
		panic(err)
	}
	p.tree.Before = func(string) error {
		if kill--; kill == 0 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}
	if err := changes[name].do(p); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// wrong returns what check finds.
func (p *PKI) wrong() (all []string) {
	p.check(func(file string, err error) {
		if err != nil {
			all = append(all, file+": "+err.Error())
		}
	})
	return all
}

// child makes a change in another process, and reports whether it was killed.
func child(t *testing.T, dir, change string, kill int) (killed bool) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "PORTICO_TEST_DIR="+dir, "PORTICO_TEST_CHANGE="+change, "PORTICO_TEST_KILL="+strconv.Itoa(kill))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return false
}

// identity is that of a service that runs, which reads the files of its folder again at each handshake.
func identity(t *testing.T, p *PKI, name string) *peertls.Identity {
	t.Helper()
	i, err := peertls.Load(peertls.Files{CA: p.path(name + "/peer-ca.crt"), Cert: p.path(name + "/peer.crt"), Key: p.path(name + "/peer.key")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// handshake connects two services, and returns the certificate that the client has shown.
func handshake(client, server *peertls.Identity, name string) ([]byte, error) {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server.ServerConfig("h2"))
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	type accepted struct {
		cert []byte
		err  error
	}
	answer := make(chan accepted, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			answer <- accepted{err: err}
			return
		}
		defer conn.Close()
		secured := conn.(*tls.Conn)
		if err := secured.Handshake(); err != nil {
			answer <- accepted{err: err}
			return
		}
		answer <- accepted{cert: secured.ConnectionState().PeerCertificates[0].Raw}
	}()
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	conn, err := tls.DialWithDialer(dialer, "tcp", listener.Addr().String(), client.ClientConfig(name, "h2"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	got := <-answer
	return got.cert, got.err
}

// TestAKilledCommand kills the command before each of its changes of the file system. The service
// whose keys it replaces continues with those it has, and the next command completes or undoes what
// was begun.
func TestAKilledCommand(t *testing.T) {
	mixed, old, replaced := 0, 0, 0
	for step := 1; ; step++ {
		p := newPKI(t)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		before := contents(t, p)
		authz, store := identity(t, p, "authz"), identity(t, p, "store")
		killed := child(t, p.dir, "issue", step)
		if _, err := tls.LoadX509KeyPair(p.path("authz/peer.crt"), p.path("authz/peer.key")); err != nil {
			mixed++
		}
		if _, err := handshake(authz, store, "store"); err != nil {
			t.Errorf("killed at step %d: the service cannot connect: %v", step, err)
		}
		recovered, err := Edit(p.dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := recovered.Complete(); err != nil {
			t.Fatal(err)
		}
		if wrong := recovered.wrong(); len(wrong) > 0 {
			t.Errorf("killed at step %d: %q", step, wrong)
		}
		after := contents(t, p)
		switch n := len(changed(before, after)); n {
		case 0:
			old++
		case 7:
			replaced++
		default:
			t.Errorf("killed at step %d: %d files have changed: %q", step, n, changed(before, after))
		}
		shown, err := handshake(authz, store, "store")
		if cert, e := recovered.readCertificate("authz/peer.crt"); err != nil || e != nil || !bytes.Equal(cert.Raw, shown) {
			t.Errorf("killed at step %d: the service has not the certificate of its folder: %v, %v", step, err, e)
		}
		if !killed {
			break
		}
	}
	t.Logf("%d times nothing was changed, %d times all was replaced, %d times a key was without its certificate in between", old, replaced, mixed)
	if old < 10 || replaced < 10 || mixed == 0 || mixed > 1 {
		t.Error("not every kind of moment was met")
	}
}

// changed returns the files that differ, or are on one side only.
func changed(before, after map[string]string) (names []string) {
	for name := range after {
		if content, ok := before[name]; !ok || content != after[name] {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestAFullDisk fails each change of the file system of each command: what is left fits, and the command
// succeeds when it is repeated.
func TestAFullDisk(t *testing.T) {
	for name, change := range changes {
		stride := 1
		if change.folder == "" {
			stride = 9 // each file is written for itself
		}
		for step := 1; ; step += stride {
			p := newPKI(t)
			before := contents(t, p)
			left := step
			p.tree.Before = func(change string) error {
				if left--; left == 0 {
					return fmt.Errorf("%s: %w", change, syscall.ENOSPC)
				}
				return nil
			}
			err := change.do(p)
			if err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			full := err != nil
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if p, err = Edit(p.dir); err != nil {
				t.Fatal(err)
			}
			if f := change.folder; f != "" {
				part := func(all map[string]string) map[string]string {
					all = maps.Clone(all)
					maps.DeleteFunc(all, func(file, _ string) bool {
						return !strings.HasPrefix(file, f+"/") || strings.HasSuffix(file, "-ca.crt")
					})
					return all
				}
				was, is := part(before), part(contents(t, p))
				if n := len(changed(was, is)); n != 0 && n != len(was) {
					t.Errorf("%s, full at step %d: %d files of %d have changed", name, step, n, len(was))
				}
			}
			if name == "update" {
				err = change.do(p)
			} else {
				_, err = p.Complete()
			}
			if wrong := p.wrong(); err != nil || len(wrong) > 0 {
				t.Errorf("%s, full at step %d: %v, %q", name, step, err, wrong)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if !full {
				break
			}
		}
	}
}

// TestTheRecoveryIsInterrupted too, at each of its steps.
func TestTheRecoveryIsInterrupted(t *testing.T) {
	for step := 1; ; step++ {
		p := newPKI(t)
		last := "rename " + p.path("authz/peer.crt")
		p.tree.Before = func(change string) error {
			if change == last {
				return syscall.ENOSPC
			}
			return nil
		}
		if err := p.Issue("authz", true); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		if wrong := p.wrong(); !slices.ContainsFunc(wrong, func(w string) bool { return strings.HasPrefix(w, "authz/.next: a change was interrupted") }) {
			t.Errorf("inspect says %q", wrong)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		recovery, left := files.New(p.dir), step
		recovery.Before = func(string) error {
			if left--; left == 0 {
				return syscall.EIO
			}
			return nil
		}
		err := recovery.Recover()
		p, e := Edit(p.dir)
		if e == nil {
			_, e = p.Complete()
		}
		if wrong := p.wrong(); e != nil || len(wrong) > 0 {
			t.Errorf("interrupted at step %d: %v, %q", step, e, wrong)
		}
		if err == nil {
			return
		}
	}
}

// TestCommandsAtOnce runs commands on one folder at once, in processes of their own.
func TestCommandsAtOnce(t *testing.T) {
	p := newPKI(t)
	var all sync.WaitGroup
	for _, name := range []string{"issue", "renew", "issue", "admin", "issue", "renew"} {
		all.Go(func() { child(t, p.dir, name, 0) })
	}
	before := contents(t, p)
	if err := p.Close(); err != nil { // until now they wait
		t.Fatal(err)
	}
	all.Wait()
	p, err := Edit(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := p.wrong(); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
	if len(changed(before, contents(t, p))) < 20 {
		t.Error("they have changed nothing")
	}
}

// TestTheSiteIsReadWithTheLock: who waits for the lock sees what its holder has written.
func TestTheSiteIsReadWithTheLock(t *testing.T) {
	p := newPKI(t)
	next := make(chan *PKI)
	go func() {
		p, err := Edit(p.dir)
		if err != nil {
			t.Error(err)
		}
		next <- p
	}()
	site := testSite()
	site.Server = "https://new.example.com"
	if _, err := p.UpdateSite(site); err != nil {
		t.Fatal(err)
	}
	select {
	case <-next:
		t.Fatal("it has not waited")
	case <-time.After(100 * time.Millisecond):
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if after := <-next; after.site.Server != site.Server {
		t.Errorf("it has the server %s", after.site.Server)
	}
}

// TestLeftoversOfWrites are removed: they hold secrets.
func TestLeftoversOfWrites(t *testing.T) {
	p := newPKI(t)
	for _, name := range []string{"authz/.new-1234", ".new-node/x", "store/.new-files/peer.key"} {
		path := filepath.Join(p.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Edit(p.dir); err != nil {
		t.Fatal(err)
	}
	for name := range contents(t, p) {
		if strings.Contains(name, ".new-") {
			t.Errorf("%s is left", name)
		}
	}
}
