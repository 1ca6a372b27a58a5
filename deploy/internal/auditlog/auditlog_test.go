package auditlog_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/deploy/internal/auditlog"
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
