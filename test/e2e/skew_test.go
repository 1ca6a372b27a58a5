package e2e

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	// skewFrom is the commit whose services run beside those of the working tree.
	skewFrom = flag.String("skew-from", "", "`commit` whose services TestSkew runs; empty: the newest release tag before HEAD, else HEAD~1")
	// skewLong adds the states outside of the documented order, and those of the upgrade.
	skewLong = flag.Bool("skew", false, "also run each earlier program alone among the present ones, and upgrade at the end")
)

// ofEarlier ends the name of a replica that runs the earlier program.
const ofEarlier = "-earlier"

// upgradeOrder is the order of docs/operations/upgrade.md.
var upgradeOrder = []string{"store", "watch-hub", "authn", "authz", "admission", "frontdoor", "csr-signer", "token-cleaner", "lifecycle"}

// TestSkew goes back to the programs of an earlier commit, one at a time and in the reverse
// order of an upgrade, while clients write and informers follow: the earlier one runs beside the
// present one, and then in its place. All requests of a tour through the API succeed in each
// state, no acknowledged write is lost, and informers see every event once.
func TestSkew(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts twenty processes")
	}
	started, workers, earlier := skewed(buildEarlier(t))
	r := balanced(t, startTrial(t, started, append(workers, earlier...), false))
	r.startWorkers(t, workers)
	r.begin(t)
	for _, program := range upgradeOrder {
		if *skewLong {
			r.exchange(t, "earlier ", program, program+ofEarlier)
			r.exchange(t, "again ", program+ofEarlier, program)
		}
	}
	for _, program := range slices.Backward(upgradeOrder) {
		r.exchange(t, "back: ", program, program+ofEarlier)
	}
	for _, program := range upgradeOrder {
		if *skewLong {
			r.exchange(t, "upgrade: ", program+ofEarlier, program)
		}
	}
	r.check(t)
	r.end(t)
}

// skewed returns the present services and workers, and the earlier programs as second replicas.
func skewed(bin string) (started, workers, earlier []program) {
	for _, p := range programs() {
		p.replica = p.name
		switch p.name {
		case "frontdoor":
			p.args = []string{"--shutdown-delay-duration=2s"}
		case "token-cleaner":
			p.args = []string{"--controllers=*,tokencleaner,bootstrapsigner"}
		}
		old := p
		old.replica, old.bin = p.name+ofEarlier, bin
		if p.name == "watch-hub" {
			const history = "--watch-history=1h" // which check reads
			p.args, old.args = []string{"--watch-hub-name=" + p.replica, history}, []string{"--watch-hub-name=" + old.replica, history}
		}
		earlier = append(earlier, old)
		if p.offer || len(p.peers) > 0 {
			started = append(started, p)
		} else {
			workers = append(workers, p)
		}
	}
	return started, workers, earlier
}

// startWorkers starts the clients of the API, which reach it through the balancer.
func (r *rolling) startWorkers(t *testing.T, workers []program) {
	t.Helper()
	file := filepath.Join(r.home, "workers.kubeconfig")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(content, []byte(r.addresses["frontdoor"]), []byte(r.balancer)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range workers {
		r.start(t, p)
	}
}

// exchange starts one replica beside the other one, and stops that.
func (r *rolling) exchange(t *testing.T, what, from, to string) {
	t.Helper()
	program := strings.TrimSuffix(from, ofEarlier)
	r.run(t, stage{what + program, true, func(t *testing.T) {
		r.replace(t, to)
		r.settle(t)
		if program == "frontdoor" {
			r.tour(t, to) // while there are two, each of which may forward to the other
		}
		r.processes[from].stop(t)
		r.settle(t)
		r.tour(t, r.up("frontdoor")[0])
	}})
	if t.Failed() {
		t.FailNow()
	}
}

// replace starts a replica and waits until it serves, if others call it.
func (r *rolling) replace(t *testing.T, replica string) {
	t.Helper()
	if p := r.programs[replica]; p.offer || p.name == "frontdoor" {
		r.again(t, replica)
		return
	}
	r.start(t, r.programs[replica])
}

// buildEarlier builds the programs of the earlier commit and returns their folder. It skips the
// test in a checkout without that commit.
func buildEarlier(t *testing.T) string {
	t.Helper()
	commit := earlierCommit(t)
	dir, bin := t.TempDir(), filepath.Join(root, "bin", "earlier")
	archive := filepath.Join(dir, "source.tar")
	source := filepath.Join(dir, "source")
	if out, err := exec.Command("sh", "-c", `git -C "$0" archive -o "$1" "$2" && mkdir "$3" && tar -x -f "$1" -C "$3" && rm "$1"`, root, archive, commit, source).CombinedOutput(); err != nil {
		t.Fatalf("unpacking %s: %v: %s", commit, err, out)
	}
	var packages []string
	for _, p := range programs() {
		packages = append(packages, "./"+p.name+"/cmd/"+p.name)
	}
	// Not build, which has one outcome for each folder of programs.
	if err := compile(source, bin+"/", nil, packages); err != nil {
		t.Fatal(err)
	}
	return bin
}

// earlierCommit returns the commit to compare with.
func earlierCommit(t *testing.T) string {
	t.Helper()
	wanted := *skewFrom
	if wanted == "" {
		tag, _ := git("describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD~1") // fails where there is none
		wanted = cmp.Or(tag, "HEAD~1")
	}
	commit, err := git("rev-parse", "--verify", "--quiet", wanted+"^{commit}")
	switch {
	case err != nil && *skewFrom != "":
		t.Fatalf("there is no commit %s: %v", wanted, err)
	case err != nil:
		t.Skipf("needs a clone with history: there is no %s (%v)", wanted, err)
	}
	subject, _ := git("log", "-1", "--format=%h %s", commit)
	t.Logf("the earlier services are those of %s: %s", wanted, subject)
	return commit
}

// git returns what git says about the repository.
func git(args ...string) (string, error) {
	var problem bytes.Buffer
	command := exec.Command("git", append([]string{"-C", root}, args...)...)
	command.Stderr = &problem
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w %s", args[0], err, bytes.TrimSpace(problem.Bytes()))
	}
	return strings.TrimSpace(string(out)), err
}
