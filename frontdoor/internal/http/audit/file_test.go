package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/auditchain"
)

// TestFileFlags: an invalid value is refused by the name of its flag.
func TestFileFlags(t *testing.T) {
	for _, flag := range []string{"", "--audit-log-maxsize=-1", "--audit-log-maxage=-1", "--audit-log-maxbackup=-1", "--audit-log-format=xml"} {
		var s fileSettings
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.register(fs)
		if flag != "" {
			if err := fs.Parse([]string{flag}); err != nil {
				t.Fatal(err)
			}
		}
		name, _, _ := strings.Cut(flag, "=")
		if err := s.check(); (err != nil) != (flag != "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", flag, err)
		}
	}
}

// TestRotation: with a maximum size the log has further files, each of whole lines; without
// it, one file.
func TestRotation(t *testing.T) {
	for _, c := range []struct{ size, files int }{{0, 1}, {1, 3}} {
		dir := t.TempDir()
		s := fileSettings{path: filepath.Join(dir, "audit.log"), maxSize: c.size}
		file, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		line := []byte(strings.Repeat("a", 400<<10))
		for range 5 {
			if n := writeAll(file, [][]byte{line}); n != 1 {
				t.Errorf("%d lines written", n)
			}
			for now := time.Now().UnixMilli(); time.Now().UnixMilli() == now; { // names of files have milliseconds
				runtime.Gosched()
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != c.files {
			t.Fatalf("size %d: %d files, want %d (%v)", c.size, len(files), c.files, err)
		}
		for _, f := range files {
			info, err := f.Info()
			if err != nil || info.Size()%int64(len(line)+1) != 0 || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %d bytes, %s (%v)", f.Name(), info.Size(), info.Mode(), err)
			}
		}
	}
}

// TestLegacy: an event is one line of text, whatever a client sends.
func TestLegacy(t *testing.T) {
	var lines strings.Builder
	to := output{legacy: true, take: blocking(dropped(), writer(&lines), nil)}
	r := httptest.NewRequest("GET", "/api?a=%0Ab", nil)
	r.Header.Set("User-Agent", "agent\nAUDIT: id=\"forged\"")
	log := &Log{apiVersion: "audit/v1", outputs: []output{to}}
	o := Outcome{Stage: ResponseComplete, Record: &Record{ID: "one"}, Request: r, Verb: "get", Status: 403, Object: &ObjectRef{Namespace: "n"}}
	o.Caller.Name = "jane\ndoe"
	log.Write(o)
	got := lines.String()
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, `AUDIT: id="one" stage="ResponseComplete"`) || !strings.Contains(got, `namespace="n"`) || !strings.Contains(got, `response="403"`) {
		t.Errorf("got %q", got)
	}
}

// TestFailuresAreCounted: a line that cannot be written is counted.
func TestFailuresAreCounted(t *testing.T) {
	failed := dropped()
	taken := blocking(failed, writer(failing{}), nil)([]byte("a"))
	if n := testutil.ToFloat64(failed); n != 1 || taken {
		t.Errorf("%v counted", n)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

// shrinking is a file on a disk with some bytes of space left.
type shrinking struct {
	*os.File
	space int
}

func (f *shrinking) Write(p []byte) (int, error) {
	n, err := f.File.Write(p[:min(len(p), f.space)])
	if f.space -= n; err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

// TestFullDisk: a line that was written in part neither takes the next one with it nor breaks the chain.
func TestFullDisk(t *testing.T) {
	s := fileSettings{path: filepath.Join(t.TempDir(), "audit.log"), format: "json", chain: true}
	opened, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	under := opened.(*lines)
	disk := &shrinking{under.WriteCloser.(*os.File), 400}
	under.WriteCloser = disk
	file, err := s.chained(opened, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	write := func(id string) int { return writeAll(file, [][]byte{[]byte(`{"auditID":"` + id + `"}`)}) }
	if got := []int{write("one"), write("two"), write("three"), write("four")}; !slices.Equal(got, []int{1, 1, 0, 0}) {
		t.Fatalf("%v lines written", got)
	}
	disk.space = 1 << 10
	if write("five")+write("six") != 2 {
		t.Fatal("the disk is full for ever")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(string(content)) {
		var e struct{ AuditID string }
		if json.Unmarshal([]byte(line), &e) == nil {
			ids = append(ids, e.AuditID)
		}
	}
	if want := []string{"one", "two", "five", "six"}; !slices.Equal(ids, want) {
		t.Errorf("%q can be read, want %q", ids, want)
	}
	r, err := auditchain.Verify(nil, s.path)
	if err != nil || len(r.Problems) != 1 || r.Last.N != 4 {
		t.Errorf("verified: %+v, error %v; want the line in part as the only problem", r, err)
	}
}

// TestChain: the lines of a file are a chain across rotated files and restarts, and other settings of the
// log have none.
func TestChain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	keyFile := filepath.Join(dir, "key")
	if err := os.WriteFile(keyFile, []byte(strings.Repeat("k", auditchain.MinKey)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := fileSettings{path: path, maxSize: 1, format: "json", chain: true, chainKey: keyFile}
	line := []byte(`{"kind":"` + strings.Repeat("a", 400<<10) + `"}`)
	for range 2 {
		file, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		if file, err = s.chained(file, prometheus.NewRegistry()); err != nil {
			t.Fatal(err)
		}
		if n := writeAll(file, [][]byte{line, bytes.Repeat([]byte("x"), 2<<20), line, line}); n != 3 { // the second one is longer than a file
			t.Errorf("%d lines written, want 3", n)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "audit*.log"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, error %v; want 3 files", files, err)
	}
	r, err := auditchain.Verify(auditchain.Key(strings.Repeat("k", auditchain.MinKey)), files...)
	if err != nil || len(r.Problems) > 0 || r.Lines != 6 || r.Last.N != 6 {
		t.Errorf("verified: %+v, error %v", r, err)
	}
	for _, no := range []fileSettings{{}, {path: "-", format: "json", chain: true}, {path: path, format: "legacy", chain: true}, {path: path, format: "json"}} {
		if no.chains() {
			t.Errorf("%+v has a chain", no)
		}
	}
	if err := (&fileSettings{path: "-", format: "json", chain: true, chainKey: keyFile}).check(); err == nil || !strings.Contains(err.Error(), "--audit-log-chain-key-file") {
		t.Errorf("a key without a chain gives %v", err)
	}
}
