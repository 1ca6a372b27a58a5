package doctor

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/internal/pki"
)

func TestWrongCalls(t *testing.T) {
	for want, args := range map[string][]string{
		"nothing to check":            nil,
		`unexpected argument "now"`:   {"now"},
		"unknown flag: --size":        {"--size=4"},
		`"xml" is neither text`:       {"--output=xml", "--pki=."},
		"--nats-url needs --pki":      {"--nats-url=nats://127.0.0.1:4222"},
		"not encrypted":               {"--etcd-servers=http://10.0.0.1:2379"},
		"--kubeconfig: stat /none":    {"--kubeconfig=/none"},
		"--etcd-servers: \"nowhere\"": {"--etcd-servers=nowhere"},
		"events is named twice":       {"--etcd-servers-overrides=/events#http://localhost:2,/events#http://localhost:3"},
		"use https://etcd.example":    {"--etcd-servers-overrides=coordination.platform.io/leases#http://etcd.example:2379"},
	} {
		var out, errs bytes.Buffer
		if status := Main(t.Context(), args, &out, &errs); status != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: status %d, %s, want 2 and %q", args, status, errs.String(), want)
		}
	}
	var out, errs bytes.Buffer
	if status := Main(t.Context(), []string{"--help"}, &out, &errs); status != 0 || !strings.Contains(out.String(), "--status-addresses") {
		t.Errorf("--help: %d %s", status, out.String())
	}
}

// found returns the findings of a check as lines.
func (e *examination) found(check string) string {
	var lines []string
	for _, f := range e.findings {
		if f.Check == check {
			lines = append(lines, string(f.Status)+" "+f.Subject+": "+f.Found)
		}
	}
	return strings.Join(lines, "\n")
}

func initialized(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	site := pki.Site{Server: "https://127.0.0.1:6443", WorkersServer: "https://127.0.0.1:6443", EtcdMembers: []string{"etcd-1"}, NATSServers: []string{"nats-1"}}
	site.Validity.Duration, site.AuthorityValidity.Duration = 100*24*time.Hour, 1000*24*time.Hour
	if err := pki.Init(dir, site); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestIdentities(t *testing.T) {
	day := 24 * time.Hour
	for want, spoil := range map[string]func(t *testing.T, dir string, e *examination){
		"certificates are valid": func(*testing.T, string, *examination) {},
		"WARN": func(_ *testing.T, _ string, e *examination) {
			e.now = func() time.Time { return time.Now().Add(90 * day) }
		},
		"expired at": func(_ *testing.T, _ string, e *examination) {
			e.now = func() time.Time { return time.Now().Add(101 * day) }
		},
		"others can read it": func(t *testing.T, dir string, _ *examination) {
			change(t, os.Chmod(filepath.Join(dir, "store/peer.key"), 0o644))
		},
		"private key does not match": func(t *testing.T, dir string, _ *examination) {
			content, err := os.ReadFile(filepath.Join(dir, "authn/peer.key"))
			change(t, err, os.WriteFile(filepath.Join(dir, "store/peer.key"), content, 0o600))
		},
		"signed by none": func(t *testing.T, dir string, _ *examination) {
			content, err := os.ReadFile(filepath.Join(initialized(t), "store/peer.crt"))
			change(t, err, os.WriteFile(filepath.Join(dir, "store/peer.crt"), content, 0o600))
		},
		"has no certificate": func(t *testing.T, dir string, _ *examination) {
			change(t, os.WriteFile(filepath.Join(dir, "store/peer.crt"), []byte("garbage"), 0o600))
		},
		"it has no authorities": func(t *testing.T, dir string, _ *examination) {
			change(t, os.RemoveAll(filepath.Join(dir, "authorities")))
		},
	} {
		dir, e := initialized(t), &examination{now: time.Now}
		spoil(t, dir, e)
		e.identities(dir)
		if got := e.found("pki"); !strings.Contains(got, want) || (e.worst() == OK) != (want == "certificates are valid") {
			t.Errorf("%s: found %s", want, got)
		}
	}
}

func change(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// startNATS starts a server with the configuration of its folder, perhaps changed.
func startNATS(t *testing.T, dir string, edit func(string) string) string {
	t.Helper()
	t.Chdir(dir)
	content, err := os.ReadFile("server.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("local.conf", []byte(edit(string(content))), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile("local.conf")
	if err != nil {
		t.Fatal(err)
	}
	options.Host, options.Port, options.HTTPPort, options.NoSigs, options.NoLog = "127.0.0.1", -1, 0, true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	return s.ClientURL()
}

// TestBus examines a NATS server with the permissions that are made, and with wrong ones.
func TestBus(t *testing.T) {
	for want, edit := range map[string]func(string) string{
		"OK watch-hub: has exactly the expected permissions": func(s string) string { return s },
		"FAIL authz: may publish changes": func(s string) string {
			return strings.Replace(s, `reader: { publish: { deny: ">" }`, `reader: { publish: { allow: ">" }`, 1)
		},
		"FAIL watch-hub: may subscribe to changes": func(s string) string {
			return strings.Replace(s, `subscribe: { allow: "hubs.heartbeat" }`, `subscribe: { allow: ">" }`, 1)
		},
		"FAIL frontdoor: may not subscribe": func(s string) string {
			return strings.Replace(s, `subscribe: { allow: "changes.>" }`, `subscribe: { allow: "other.>" }`, 1)
		},
		"FAIL admission: nats: Authorization Violation": func(s string) string { return strings.ReplaceAll(s, "# admission", "# admission") },
	} {
		t.Run(want, func(t *testing.T) {
			dir, e := initialized(t), &examination{now: time.Now}
			if strings.Contains(want, "Authorization") { // of a folder that NATS does not know
				other, err := os.ReadFile(filepath.Join(initialized(t), "admission", "nats.seed"))
				change(t, err, os.WriteFile(filepath.Join(dir, "admission", "nats.seed"), other, 0o600))
			}
			url := startNATS(t, filepath.Join(dir, "nats-1"), edit)
			e.bus(dir, url)
			if got := e.found("nats"); !strings.Contains(got, want) || strings.Contains(want, "OK") != (e.worst() == OK) {
				t.Errorf("found %s", got)
			}
		})
	}
}

// TestPages examines processes that say what no healthy one does.
func TestPages(t *testing.T) {
	metrics := "portico_watchhub_publishes 1\nportico_watchhub_revision 5000\n"
	for want, bad := range map[string]string{
		"":                                      metrics,
		"FAIL watch-hub: none of 1 hubs":        "portico_watchhub_publishes 0\n",
		"portico_store_mirror_revision is 3999": metrics + "portico_store_mirror_revision 1001\n",
		"FAIL":                                  "this is no metric\n",
		"FAIL overrides: events, main (":        metrics + "portico_store_mirror_revision{etcd=\"main\"} 5000\nportico_store_mirror_revision{etcd=\"events\"} 9000\n",
		"etcd events has raised an alarm":       metrics + "portico_store_etcd_alarms{etcd=\"main\"} 0\nportico_store_etcd_alarms{etcd=\"events\"} 1\n",
		"mirror_revision events is 1999 behind": "portico_watchhub_publishes 1\n" + ofTwo("watchhub_revision", 9000, 7000) + ofTwo("store_mirror_revision", 9000, 5001),
		"were rejected in the last minutes":     metrics + "portico_changes_alarm 1\n",
		"uses 97 % of its quota":                metrics + "portico_etcd_quota_bytes 100\nportico_etcd_database_used_bytes 97\n",
		"3 calls of /x were refused":            metrics + "# TYPE portico_rpc_server_seconds histogram\nportico_rpc_server_seconds_bucket{method=\"/x\",code=\"PermissionDenied\",le=\"+Inf\"} 3\nportico_rpc_server_seconds_sum{method=\"/x\",code=\"PermissionDenied\"} 1\nportico_rpc_server_seconds_count{method=\"/x\",code=\"PermissionDenied\"} 3\n",
	} {
		page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				_, _ = w.Write([]byte(bad))
			}
		}))
		e := &examination{now: time.Now}
		e.processes(t.Context(), []string{strings.TrimPrefix(page.URL, "http://")})
		page.Close()
		var out bytes.Buffer
		if err := e.print(&out, "text"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) && !strings.Contains(e.all(), want) || (want == "") != (e.worst() == OK) {
			t.Errorf("%q: found\n%s", want, out.String())
		}
	}
}

// ofTwo returns a metric of the main etcd and that of Events.
func ofTwo(name string, main, events int) string {
	return fmt.Sprintf("portico_%s{etcd=\"main\"} %d\nportico_%s{etcd=\"events\"} %d\n", name, main, name, events)
}

// all returns all findings as lines.
func (e *examination) all() string {
	var lines []string
	for _, f := range e.findings {
		lines = append(lines, string(f.Status)+" "+f.Subject+": "+f.Found)
	}
	return strings.Join(lines, "\n")
}

// TestClock shows the doctor answers of other times.
func TestClock(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 500e6, time.UTC)
	for skew, want := range map[time.Duration]Status{
		0: OK, time.Second: OK, -time.Second: OK, 5 * time.Second: Warn, -5 * time.Second: Warn, 2 * time.Minute: Fail, -2 * time.Minute: Fail,
	} {
		e := &examination{now: time.Now}
		e.clock("store", http.Header{"Date": {now.Add(skew).Format(http.TimeFormat)}}, now, now.Add(time.Millisecond))
		if e.worst() != want {
			t.Errorf("%v: %+v, want %s", skew, e.findings, want)
		}
	}
}

// TestEmulatedVersions: front doors may be behind others while a suite is rolled, never ahead.
func TestEmulatedVersions(t *testing.T) {
	info := func(emulated string) string { return "portico_build_info{emulated=\"" + emulated + "\"} 1\n" }
	const door = "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 0\n"
	for _, c := range []struct{ one, two, admission, want string }{
		{"1.36", "1.36", "1.36", "OK emulated: all have 1.36"},
		{"1.21", "1.36", "1.36", "WARN emulated: 1.21 (one); 1.36 (two, admission)"},
		{"1.21", "1.21", "1.36", "WARN emulated: 1.21 (one, two); 1.36 (admission)"},
		{"1.21", "1.36", "1.21", "FAIL emulated: 1.21 (one, admission); 1.36 (two)"},
	} {
		var pages []page
		for _, p := range [][2]string{{"one", info(c.one) + door}, {"two", info(c.two) + door}, {"admission", info(c.admission)}} {
			parser := expfmt.NewTextParser(model.UTF8Validation)
			families, err := parser.TextToMetricFamilies(strings.NewReader(p[1]))
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, page{p[0], families})
		}
		e := &examination{now: time.Now}
		e.skew(pages)
		if got := e.found("skew"); !strings.HasSuffix(got, "\n"+c.want) {
			t.Errorf("got %s, want %s", got, c.want)
		}
		for _, f := range e.findings {
			if f.Status == Warn && !strings.Contains(f.Advice, "rolling") {
				t.Errorf("the advice %q", f.Advice)
			}
		}
	}
}

// TestRoomOfMembers: the quota of etcd bounds the file, whether it is in use or free.
func TestRoomOfMembers(t *testing.T) {
	for want, state := range map[string]*clientv3.StatusResponse{
		"OK etcd-1: the database uses 70 % of its quota":   {Leader: 1, DbSize: 70, DbSizeInUse: 60, DbSizeQuota: 100},
		"WARN etcd-1: the database uses 90 % of its quota": {Leader: 1, DbSize: 90, DbSizeInUse: 80, DbSizeQuota: 100},
		"FAIL etcd-1: the database uses 99 % of its quota": {Leader: 1, DbSize: 99, DbSizeInUse: 20, DbSizeQuota: 100},
	} {
		e := &examination{now: time.Now}
		e.member("etcd-1", state)
		if got := e.found("etcd"); !strings.Contains(got, want) {
			t.Errorf("found %s, want %s", got, want)
		}
		if advice := e.findings[len(e.findings)-1].Advice; strings.Contains(advice, "defragment") != (state.DbSizeInUse == 20) {
			t.Errorf("advice %q for %s", advice, want)
		}
	}
}

// TestIntermediates: a certificate that an intermediate in its file has signed is good, and without it is not.
func TestIntermediates(t *testing.T) {
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	begin := time.Now().Add(-time.Hour)
	sign := func(name string, ca bool, parent *x509.Certificate, by, key *ecdsa.PrivateKey) *x509.Certificate {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: ca, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign, NotBefore: begin, NotAfter: time.Now().AddDate(2, 0, 0)}
		if parent == nil {
			parent = template
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	rootKey, middleKey, leafKey := newKey(), newKey(), newKey()
	root := sign("root", true, nil, rootKey, rootKey)
	middle := sign("middle", true, root, rootKey, middleKey)
	leaf := sign("leaf", false, middle, middleKey, leafKey)
	file := filepath.Join(t.TempDir(), "peer.crt")
	for want, certs := range map[int][]*x509.Certificate{1: {leaf, middle}, 0: {leaf}} {
		var content []byte
		for _, c := range certs {
			content = append(content, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
		}
		change(t, os.WriteFile(file, content, 0o600))
		e := &examination{now: time.Now}
		if got := e.identity(file, []*x509.Certificate{root}); got != want {
			t.Errorf("%d certificates: good %d, want %d: %s", len(certs), got, want, e.all())
		}
	}
}
