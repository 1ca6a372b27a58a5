package e2e

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/kit/kittest/kmsplugin"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/trials"
	"github.com/portico-platform/portico/test/e2e/matrix"
)

// The long form of the attack, as `make attack` runs it.
var (
	attackTime  = flag.Duration("duration", 0, "how long the trials run, again and again, in their large form; 0 is once in the small form")
	attackWrite = flag.Duration("slowest", 15*time.Second, "longest that a request of the administrator may take meanwhile")
	attackBytes = flag.Int64("memory", 1<<30, "bytes that the processes may hold together")
)

const (
	proxyName = "front-proxy"
	// hostileExtensions lets the front door connect to the extensions of trials, and to no other server of this machine.
	hostileExtensions = "--connect-allow-cidrs=127.66.0.0/16"
)

// trusted makes the authorities of users and front proxies, and the flags of authn
// that trust them and the identities of the matrix.
func trusted(t *testing.T, target *attack.Target, identities *matrix.Identities) (flags []string) {
	t.Helper()
	target.Dir, target.ProxyName, target.Large = t.TempDir(), proxyName, *attackTime > 0
	for flag, authority := range map[string]**peertls.Authority{
		"client-ca-file": &target.ClientAuthority, "requestheader-client-ca-file": &target.ProxyAuthority,
	} {
		var err error
		if *authority, err = peertls.NewAuthority(); err != nil {
			t.Fatal(err)
		}
		files, err := (*authority).Issue(target.Dir, flag)
		if err != nil {
			t.Fatal(err)
		}
		identities.Trust(t, flag, files.CA)
		flags = append(flags, "--"+flag+"="+files.CA)
	}
	return append(append(flags, identities.Flags()...), "--requestheader-allowed-names="+proxyName, "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-")
}

// besides lets the small forms run at the same time. The large ones are measured, and
// so run alone.
func besides(t *testing.T) {
	if *attackTime == 0 {
		t.Parallel()
	}
}

// encryptedBy starts the KMS plugin of the target, and returns the flag with which it encrypts PodTemplates.
func encryptedBy(t *testing.T, target *attack.Target) (flag string) {
	t.Helper()
	target.KMS = kmsplugin.Start(t)
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	content := "apiVersion: " + vocabulary.Platform().Group("apiserver.config.") + "/v1\nkind: EncryptionConfiguration\nresources:\n" +
		"- {resources: [podtemplates], providers: [{kms: {apiVersion: v2, name: hostile, endpoint: '" + target.KMS.Endpoint() + "'}}]}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--encryption-provider-config=" + file
}

func asTarget(p *process, name string) attack.Process {
	return attack.Process{Name: name, PID: p.cmd.Process.Pid, Log: p.output}
}

// TestAttackAllInOne runs the trials against all services in one process.
func TestAttackAllInOne(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	besides(t)
	target, identities := &attack.Target{}, matrix.New(t)
	a := startAllInOne(t, vocabulary.Platform(), append(trusted(t, target, identities), hostileExtensions, encryptedBy(t, target))...)
	target.Admin, target.Address = a.Cluster, a.address
	target.Processes = []attack.Process{asTarget(a.process, "portico")}
	t.Run("Matrix", func(t *testing.T) { matrix.Run(t, identities, target) })
	assault(t, target)
}

// TestAttackProcesses runs the same trials, and those that need processes, against
// each service as a separate process.
func TestAttackProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts eleven processes")
	}
	besides(t)
	target, identities := &attack.Target{}, matrix.New(t)
	flags := trusted(t, target, identities)
	s := newSuite(t, vocabulary.Platform())
	link := lossy.New(t, s.addresses["etcd"])
	s.between = func(from, to string) string {
		if from == "store" && to == "etcd" {
			return link.Address()
		}
		return s.addresses[to]
	}
	encryption := encryptedBy(t, target)
	for _, p := range programs() {
		switch p.name {
		case "authn":
			p.args = append(p.args, flags...)
		case "store", "watch-hub":
			p.args = append(p.args, encryption)
		case "frontdoor":
			client := issueFor(t, "front-proxy-client")
			p.args = append(p.args, "--proxy-client-cert-file="+client.Cert, "--proxy-client-key-file="+client.Key, hostileExtensions)
		}
		s.start(t, p)
	}
	target.Admin, target.Address = s.connect(t, "frontdoor"), s.addresses["frontdoor"]
	target.Peers = &attack.Peers{Authority: s.authority, NATS: s.addresses["nats"], StoreLink: link, Services: s.addresses,
		Etcd: s.dialEtcd(t, s.issue(t, "damaging", "store"))}
	for name, p := range s.processes {
		target.Processes = append(target.Processes, asTarget(p, name))
	}
	t.Run("Matrix", func(t *testing.T) { matrix.Run(t, identities, target) })
	assault(t, target)
}

// assault runs all trials that the target allows, once or in random order for the
// requested time, and logs the report.
func assault(t *testing.T, target *attack.Target) {
	t.Helper()
	session, err := attack.Start(t.Context(), target, attack.Limits{Memory: *attackBytes, Slowest: *attackWrite})
	if err != nil {
		t.Fatal(err)
	}
	all, end, ran := trials.All(), time.Now().Add(*attackTime), false
	for round := 0; round == 0 || time.Now().Before(end); round++ {
		for _, trial := range all {
			if trial.Separate && target.Peers == nil {
				continue
			}
			t.Run(trial.Name, func(t *testing.T) {
				ran = true
				if o := session.Try(t.Context(), trial); o.Err != nil {
					t.Errorf("finding %s: %v", trial.Finding, o.Err)
				}
			})
		}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	report := session.Close()
	if !ran {
		return // -run has selected another test of the suite
	}
	t.Logf("%s", report)
	for _, fault := range report.Faults() {
		t.Error(fault)
	}
}
