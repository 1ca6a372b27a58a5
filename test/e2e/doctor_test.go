package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// patient is a suite whose processes have status ports, which the doctor examines.
type patient struct {
	*suite
	*cluster.Cluster
	pages    map[string]string // status addresses by process
	override string            // the flag of the etcd of Events
}

// TestDoctor examines a suite that is well, and the same one with real faults.
func TestDoctor(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts eleven processes")
	}
	p := &patient{suite: newSuite(t, vocabulary.K8s()), pages: map[string]string{}}
	p.override = p.startOverride(t)
	for _, program := range programs() {
		if program.etcd {
			program.args = []string{p.override}
		}
		if program.name == "frontdoor" {
			program.args = []string{"--audit-log-path=" + filepath.Join(p.logs, "frontdoor.audit")}
		}
		p.startWatched(t, program)
	}
	p.Cluster = p.connect(t, "frontdoor")
	var found diagnosis
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("found: %+v", found)
		}
	})
	eventually(t, "all is well", func() bool {
		var status int
		status, found = p.examine(t)
		return status == 0 && !found.has("FAIL", "", "")
	})
	_, found = p.examine(t)
	for _, want := range [][2]string{{"ready", ""}, {"serving", ""}, {"request", ""}, {"clock", ""}, {"process", "ready"}, {"skew", "all have k8s"},
		{"certificates", "are valid"}, {"peers", "store is reached"}, {"publisher", "publishes"}, {"lag", "up to date"}, {"etcd", "no alarm"}, {"etcd", "(etcd events) version"}} {
		if !found.has("OK", want[0], want[1]) {
			t.Errorf("nothing says that %v is well: %+v", want, found)
		}
	}
	t.Run("mixed versions", p.testMixed)
	t.Run("alarm", p.testAlarm)
	t.Run("other vocabulary", p.testVocabulary)
	t.Run("expired certificate", p.testExpired)
	t.Run("stopped service", p.testStopped)
	t.Run("stopped etcd", p.testStoppedEtcd)
}

// startWatched starts a program with a status port.
func (p *patient) startWatched(t *testing.T, program program) {
	t.Helper()
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	name := program.name
	if program.replica != "" {
		name = program.replica
	}
	p.pages[name], program.args = address, append(program.args, "--status-address="+address)
	p.start(t, program)
}

// diagnosis is what the doctor has found.
type diagnosis []struct{ Status, Check, Subject, Found, Advice string }

// has reports whether there is a finding; empty texts stand for any.
func (d diagnosis) has(status, check, text string) bool {
	for _, f := range d {
		if f.Status == status && (check == "" || f.Check == check) && strings.Contains(f.Subject+" "+f.Found, text) {
			return true
		}
	}
	return false
}

// examine runs the doctor and returns its exit status and findings.
func (p *patient) examine(t *testing.T) (int, diagnosis) {
	t.Helper()
	files := p.issue(t, "checker", "checker")
	var addresses []string
	for _, address := range p.pages {
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	command := exec.Command(portico(t), "doctor", "--output=json", "--kubeconfig="+filepath.Join(p.home, "kubeconfig"), "--status-addresses="+strings.Join(addresses, ","),
		"--etcd-servers=https://"+p.addresses["etcd"], p.override, "--etcd-cafile="+files.CA, "--etcd-certfile="+files.Cert, "--etcd-keyfile="+files.Key)
	out, err := command.Output()
	var ended *exec.ExitError
	if err != nil && (!errors.As(err, &ended) || ended.ExitCode() != 1) {
		t.Fatalf("doctor: %v: %s", err, out)
	}
	var report struct {
		Status   string
		Findings diagnosis
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	status := command.ProcessState.ExitCode()
	if (report.Status == "FAIL") != (status == 1) {
		t.Errorf("exit status %d for %s", status, report.Status)
	}
	for _, f := range report.Findings {
		if (f.Status == "OK") != (f.Advice == "") {
			t.Errorf("a finding %s with the advice %q: %s", f.Status, f.Advice, f.Found)
		}
	}
	return status, report.Findings
}

// mustFind waits until the doctor has found a failure.
func (p *patient) mustFind(t *testing.T, check, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the doctor finds %s %s", check, text), func() bool {
		status, found := p.examine(t)
		return status == 1 && found.has("FAIL", check, text)
	})
}

func (p *patient) testAlarm(t *testing.T) {
	p.raise(t, "etcd", p.pages["store"]+" etcd main has raised an alarm")
	p.raise(t, ofEvents, p.pages["store"]+" etcd events has raised an alarm", "(etcd events) alarm: ")
}

// raise raises an alarm in an etcd; the doctor finds it.
func (p *patient) raise(t *testing.T, server string, texts ...string) {
	client := p.etcdClient(t, server)
	maintenance := etcdserverpb.NewMaintenanceClient(client.ActiveConnection())
	alarm := func(action etcdserverpb.AlarmRequest_AlarmAction) {
		if _, err := maintenance.Alarm(t.Context(), &etcdserverpb.AlarmRequest{Action: action, Alarm: etcdserverpb.AlarmType_NOSPACE}); err != nil {
			t.Fatal(err)
		}
	}
	alarm(etcdserverpb.AlarmRequest_ACTIVATE)
	p.mustFind(t, "etcd", "NOSPACE")
	for _, text := range texts {
		p.mustFind(t, "etcd", text)
	}
	alarm(etcdserverpb.AlarmRequest_DEACTIVATE)
	eventually(t, "all is well again", func() bool { status, _ := p.examine(t); return status == 0 })
}

func (p *patient) testVocabulary(t *testing.T) {
	p.vocabulary = vocabulary.Platform()
	p.startWatched(t, program{name: "token-cleaner", replica: "stranger", files: map[string]string{"kubeconfig": "workers.kubeconfig"}})
	p.vocabulary = vocabulary.K8s()
	p.mustFind(t, "skew", "vocabulary k8s (")
	p.end(t, "stranger")
}

// end stops a process that is not missed.
func (p *patient) end(t *testing.T, name string) {
	p.processes[name].stop(t)
	delete(p.pages, name)
}

func (p *patient) testExpired(t *testing.T) {
	expired := filepath.Join(t.TempDir(), "old.crt")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(expired, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	p.startWatched(t, program{name: "authn", replica: "old", peers: []string{"store"}, files: map[string]string{},
		args: []string{"--client-ca-file=" + expired}})
	p.mustFind(t, "certificates", "old.crt expired at 2020-")
	p.end(t, "old")
}

func (p *patient) testStopped(t *testing.T) {
	p.processes["authz"].stop(t)
	p.mustFind(t, "process", p.pages["authz"])
	p.mustFind(t, "peers", p.pages["admission"]+" authz cannot be reached")
}

func (p *patient) testStoppedEtcd(t *testing.T) {
	p.processes["etcd"].stop(t)
	p.mustFind(t, "etcd", "https://"+p.addresses["etcd"])
	p.mustFind(t, "etcd", "etcd main does not respond to the store")
	p.processes[ofEvents].stop(t)
	p.mustFind(t, "etcd", "https://"+p.addresses[ofEvents]+" (etcd events)")
}
