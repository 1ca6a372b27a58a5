package auditchain_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/kit/auditchain"
)

// earlier returns n lines as an earlier release wrote them, after a link.
func earlier(link auditchain.Link, n int) (lines []string, last auditchain.Link) {
	for i := range n {
		line := fmt.Appendf(nil, `{"auditID":"old%d"}`, i)
		link = link.Next(key, line)
		lines = append(lines, string(auditchain.Append(nil, line, link)))
	}
	return lines, link
}

func put(t *testing.T, path string, lines []string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// TestTheFirstLineProvesItself: when the lines before it are gone, the first line can neither be edited, nor given
// another hash of the line before, nor be exchanged for one of an earlier release.
func TestTheFirstLineProvesItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write(t, path, key, 10)
	all := read(t, path)
	line, link, err := auditchain.Split([]byte(all[5]))
	if err != nil {
		t.Fatal(err)
	}
	bare := bytes.Clone(line[:bytes.LastIndex(line, []byte(`,"after"`))])
	for what, first := range map[string]string{
		"edited":                     strings.Replace(all[5], `"5"`, `"7"`, 1),
		"after another line":         strings.Replace(all[5], `"after":"`, `"after":"0`, 1),
		"as an earlier release":      string(auditchain.Append(nil, append(bare, '}'), link)),
		"after a line that is older": strings.Replace(all[5], `"after"`, `"resumed"`, 1),
	} {
		put(t, path, append([]string{first}, all[6:]...))
		if problems(t, key, path) == "" {
			t.Errorf("%s: nothing is found", what)
		}
	}
	put(t, path, all[5:])
	if r, err := auditchain.Verify(key, path); err != nil || len(r.Problems) > 0 || r.First.N != 6 || r.Unproven {
		t.Errorf("what is left: %+v, %v", r, err)
	}
}

// TestEarlierReleases: logs of earlier releases verify, and go on with lines that prove themselves.
func TestEarlierReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	old, last := earlier(auditchain.Link{}, 4)
	put(t, path, old)
	if err := os.WriteFile(path+".head", []byte(last.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, path, key, 2)
	write(t, path, key, 2)
	all := read(t, path)
	for from, unproven := range map[int]bool{0: false, 1: true, 3: true, 4: false, 5: false, 7: false} {
		put(t, path, all[from:])
		if r, err := auditchain.Verify(key, path); err != nil || len(r.Problems) > 0 || r.Unproven != unproven {
			t.Errorf("from line %d: %+v, %v", from+1, r, err)
		}
	}
	if !strings.Contains(all[4], `"resumed":"`) || !strings.Contains(all[5], `"after":"`) || !strings.Contains(all[6], `"after":"`) {
		t.Errorf("the lines are\n%s", strings.Join(all, "\n"))
	}
	_, link, err := auditchain.Split([]byte(all[7]))
	if err != nil {
		t.Fatal(err)
	}
	later, _ := earlier(link, 2) // an earlier release takes over again
	put(t, path, append(all, later...))
	if got := problems(t, key, path); got != "" {
		t.Errorf("after a downgrade: %s", got)
	}
}
