package auditchain_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/kit/auditchain"
)

var key = auditchain.Key(strings.Repeat("k", auditchain.MinKey))

// write appends n lines to a log as a process does that starts now.
func write(t *testing.T, path string, k auditchain.Key, n int) auditchain.Link {
	t.Helper()
	head, err := auditchain.Open(path, k)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = head.Close() }()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for i := range n {
		err := head.Chain(fmt.Appendf(nil, `{"auditID":"%d","user":"a,\"chain\":\"b"}`, i), func(line []byte) error {
			_, err := fmt.Fprintf(file, "%s\n", line)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return head.Link()
}

func problems(t *testing.T, k auditchain.Key, paths ...string) string {
	t.Helper()
	r, err := auditchain.Verify(k, paths...)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range r.Problems {
		all = append(all, strings.TrimPrefix(p.String(), filepath.Dir(p.File)+"/"))
	}
	return strings.Join(all, "\n")
}

// TestTampering: each way to change a log is found, and where.
func TestTampering(t *testing.T) {
	swap := func(lines []string, i, j int) []string { lines[i], lines[j] = lines[j], lines[i]; return lines }
	for what, c := range map[string]struct {
		change func(lines []string) []string
		want   string
	}{
		"nothing":        {func(l []string) []string { return l }, ""},
		"edited":         {func(l []string) []string { l[4] = strings.Replace(l[4], `"4"`, `"7"`, 1); return l }, "audit.log:5: line 5 or the previous one was edited"},
		"link edited":    {func(l []string) []string { l[4] = strings.Replace(l[4], `"chain":"5:`, `"chain":"6:`, 1); return l }, "audit.log:5: line 6 follows line 4"},
		"removed":        {func(l []string) []string { return append(l[:4], l[5:]...) }, "audit.log:5: line 6 follows line 4: lines in between are missing"},
		"reordered":      {func(l []string) []string { return swap(l, 4, 5) }, "audit.log:5: line 6 follows line 4"},
		"repeated":       {func(l []string) []string { return append(l[:5], l[4:]...) }, "audit.log:6: line 5 follows line 5: lines were moved or repeated"},
		"inserted":       {func(l []string) []string { return append(l[:5], append([]string{`{"auditID":"x"}`}, l[5:]...)...) }, "audit.log:6: the line was edited or is incomplete: the line has no link"},
		"cut in part":    {func(l []string) []string { l[4] = l[4][:20]; return l }, "audit.log:5: the line was edited or is incomplete"},
		"another chain":  {func(l []string) []string { return append(l, l[:3]...) }, "audit.log:11: line 1 follows line 10"},
		"start is gone":  {func(l []string) []string { return l[3:] }, ""},
		"whole new text": {func([]string) []string { return []string{"x", "y"} }, "audit.log:1: the line was edited"},
	} {
		path := filepath.Join(t.TempDir(), "audit.log")
		write(t, path, key, 10)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := c.change(strings.Split(strings.TrimSpace(string(content)), "\n"))
		if err := os.WriteFile(path, []byte(strings.Join(changed, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := problems(t, key, path); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: found %q, want %q", what, got, c.want)
		}
	}
}

// TestKeys: without the key no chain can be made that verifies.
func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write(t, path, nil, 3)
	if problems(t, nil, path) != "" {
		t.Error("a chain without a key does not verify")
	}
	if problems(t, key, path) == "" {
		t.Error("a chain without the key verifies")
	}
	for content, ok := range map[string]bool{"": false, "short\n": false, strings.Repeat("x", 32) + "\n": true} {
		if _, err := auditchain.ParseKey([]byte(content)); (err == nil) != ok {
			t.Errorf("the key %q gives %v", content, err)
		}
	}
}

// TestRotationAndRestarts: the chain goes on in new files and processes, and files may be given in any
// order, compressed too.
func TestRotationAndRestarts(t *testing.T) {
	dir := t.TempDir()
	path, old, oldest := filepath.Join(dir, "audit.log"), filepath.Join(dir, "old.log"), filepath.Join(dir, "oldest.log.gz")
	write(t, path, key, 5)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(content)
	_ = z.Close()
	if err := os.WriteFile(oldest, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(path)
	write(t, path, key, 5)
	write(t, path, key, 5)
	if err := os.Rename(path, old); err != nil {
		t.Fatal(err)
	}
	last := write(t, path, key, 5)
	r, err := auditchain.Verify(key, path, oldest, old)
	if err != nil || len(r.Problems) > 0 || r.Lines != 20 || r.First.N != 1 || r.Last != last {
		t.Errorf("verified: %+v, error %v", r, err)
	}
	if got := problems(t, key, path, oldest); !strings.HasPrefix(got, "audit.log:1: line 16 follows line 5") {
		t.Errorf("without a file in between: %q", got)
	}
	if head, err := auditchain.ReadHead(path); err != nil || head != last {
		t.Errorf("the head is %v, want %v; error %v", head, last, err)
	}
}

// TestInterruptedWrites: after a crash the chain goes on from the last whole line, or shows what is
// missing.
func TestInterruptedWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write(t, path, key, 3)
	before, err := os.ReadFile(path + ".head")
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, key, 2)
	if err := os.WriteFile(path+".head", before, 0o600); err != nil { // the head was not written in time
		t.Fatal(err)
	}
	write(t, path, key, 1)
	if got := problems(t, key, path); got != "" {
		t.Errorf("the head was late: %s", got)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content[:len(content)-40], 0o600); err != nil { // the last line was not written whole
		t.Fatal(err)
	}
	write(t, path, key, 1)
	got := problems(t, key, path)
	if !strings.HasPrefix(got, "audit.log:6: the line was edited or is incomplete") || !strings.Contains(got, "audit.log:7: line 7 follows line 5") {
		t.Errorf("a line was written in part: %q", got)
	}
	if err := os.WriteFile(path+".head", []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := auditchain.Open(path, key); err == nil {
		t.Error("a head that cannot be read is ignored")
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(`{"a":1,"chain":"1:00"}`))
	f.Add(auditchain.Append(nil, []byte(`{"a":1}`), auditchain.Link{N: 3}))
	f.Fuzz(func(t *testing.T, chained []byte) {
		line, link, err := auditchain.Split(bytes.Clone(chained))
		if err == nil && len(line) > 1 && !bytes.Equal(auditchain.Append(nil, line, link), chained) && !strings.Contains(string(chained), ":0") &&
			!strings.Contains(string(chained), "+") && strings.ToLower(string(chained)) == string(chained) {
			t.Errorf("%q splits into %q and %v", chained, line, link)
		}
	})
}

func BenchmarkChain(b *testing.B) {
	line := []byte(`{"kind":"Event","requestURI":"` + strings.Repeat("x", 700) + `"}`)
	var link auditchain.Link
	for b.Loop() {
		link = link.Next(key, line)
		_ = auditchain.Append(nil, line, link)
	}
}
