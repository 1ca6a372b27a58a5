package auditlog_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/internal/auditlog"
	"github.com/portico-platform/portico/services/kit/auditchain"
)

func TestVerify(t *testing.T) {
	dir := t.TempDir()
	path, key := filepath.Join(dir, "audit.log"), filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	head, err := auditchain.Open(path, auditchain.Key(strings.Repeat("k", 40)))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for i := range 5 {
		if err := head.Chain(fmt.Appendf(nil, `{"n":%d}`, i), func(line []byte) error {
			_, err := fmt.Fprintf(&log, "%s\n", line)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		content string
		args    []string
		status  int
		out     string
	}{
		"whole":           {log.String(), []string{"verify", "--key-file", key, path}, 0, "5 lines, from 1 to 5, problems: 0, link: " + head.Link().String()},
		"as expected":     {log.String(), []string{"verify", "--key-file", key, "--expect", head.Link().String(), path}, 0, "problems: 0"},
		"without the key": {log.String(), []string{"verify", path}, 1, "audit.log:1: line 1 or the previous one was edited, or another key was used"},
		"edited":          {strings.Replace(log.String(), "3", "8", 1), []string{"verify", "--key-file", key, path}, 1, "problems: "},
		"truncated":       {log.String()[:strings.LastIndex(log.String(), `{"n":3`)], []string{"verify", "--key-file", key, path}, 1, "line 3, but line 5 was written: lines at the end are missing"},
		"all removed":     {"", []string{"verify", "--key-file", key, path}, 1, "line 0, but line 5 was written"},
		"no file":         {"", []string{"verify", filepath.Join(dir, "other")}, 2, ""},
		"no key":          {"", []string{"verify", "--key-file", path, path}, 2, ""},
		"no link":         {"", []string{"verify", "--expect", "5", path}, 2, ""},
		"no verb":         {"", []string{path}, 2, ""},
		"help":            {"", []string{"--help"}, 0, ""},
	} {
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if status := auditlog.Main(c.args, &out, &errs); status != c.status || !strings.Contains(out.String(), c.out) {
			t.Errorf("%s: status %d, want %d\n%s%s", what, status, c.status, out.String(), errs.String())
		}
	}
}

// TestWhatIsLeft: the beginning of a log may be missing, which is said, unless it is expected; its head may not.
func TestWhatIsLeft(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	rotated := filepath.Join(dir, "audit-2026-11-28T13-00-00.000.log")
	head, err := auditchain.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	var links []string
	for i := range 6 {
		if err := head.Chain(fmt.Appendf(nil, `{"n":%d}`, i), func(line []byte) error {
			lines = append(lines, string(line)+"\n")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		links = append(links, head.Link().String())
	}
	write := func(path string, lines []string) {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(status int, says string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := auditlog.Main(append([]string{"verify"}, args...), &out, &errs); got != status || !strings.Contains(out.String()+errs.String(), says) {
			t.Errorf("%q: status %d, want %d with %q\n%s%s", args, got, status, says, out.String(), errs.String())
		}
	}
	write(rotated, lines[2:4])
	write(path, lines[4:])
	run(0, "warning: the log begins at line 3, link: "+links[2], path, rotated)
	run(0, "warning", "--expect-first", links[2], path, rotated)
	run(0, "warning", "--expect-first", links[3], path, rotated)
	run(1, "does not begin with line 2", "--expect-first", links[1], path, rotated)
	run(1, "does not begin with line 3", "--expect-first", "3"+links[3][1:], path, rotated)
	run(2, "--expect-first", "--expect-first", "3", path, rotated)
	run(1, "lines at the end are missing", rotated)
	edited := strings.Replace(lines[2], `"n":2`, `"n":9`, 1)
	write(rotated, []string{edited, lines[3]})
	run(1, "line 3 was edited", path, rotated)
	write(rotated, lines[2:4])
	for _, gone := range []string{path + ".head", path} {
		if err := os.Remove(gone); err != nil {
			t.Fatal(err)
		}
		run(1, "no .head file found", rotated)
	}
	run(1, "lines at the end are missing", "--expect", links[5], rotated)
	run(0, "problems: 0", "--expect", links[3], rotated)
}
