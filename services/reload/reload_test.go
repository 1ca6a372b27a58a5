package reload_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/reload"
)

// pair is two files that are valid if they are equal.
type pair struct {
	t    *testing.T
	dir  string
	logs strings.Builder

	failures int
}

func newPair(t *testing.T) *pair { return &pair{t: t, dir: t.TempDir()} }

func (p *pair) write(name, content string) {
	p.t.Helper()
	// With the modification time of the previous file, as cp -p does.
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) config() reload.Config[string] {
	return reload.Config[string]{
		What: "pair", Paths: []string{filepath.Join(p.dir, "a"), filepath.Join(p.dir, "b")},
		Parse: func(content [][]byte) (string, error) {
			if string(content[0]) != string(content[1]) {
				return "", errors.New("a and b differ")
			}
			return string(content[0]), nil
		},
		Failed: func() { p.failures++ },
		Log:    slog.New(slog.NewTextHandler(&p.logs, nil)),
	}
}

func TestFilesAreFollowed(t *testing.T) {
	p := newPair(t)
	if _, err := reload.Open(p.config()); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v for files that do not exist", err)
	}
	p.write("a", "1")
	p.write("b", "2")
	if _, err := reload.Open(p.config()); err == nil {
		t.Fatal("files that do not match are accepted")
	}
	p.write("b", "1")
	files, err := reload.Open(p.config())
	if err != nil {
		t.Fatal(err)
	}
	want := func(want string) {
		t.Helper()
		if got := files.Get(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want("1")
	p.write("a", "2")
	want("1") // the key is still the old one
	want("1")
	p.write("b", "2")
	want("2")
	if err := os.Remove(filepath.Join(p.dir, "a")); err != nil {
		t.Fatal(err)
	}
	want("2")
	want("2")
	if n := strings.Count(p.logs.String(), "cannot be read"); n != 1 || p.failures != 2 {
		t.Errorf("the missing file is logged %d times, and %d failures are counted:\n%s", n, p.failures, p.logs.String())
	}
	p.write("a", "1")
	p.write("b", "1")
	want("1") // back to what was in use before
	if n := strings.Count(p.logs.String(), "refused"); n != 1 {
		t.Errorf("the refusal is logged %d times, want once:\n%s", n, p.logs.String())
	}
}

func TestFilesAreReadAtMostEverySoOften(t *testing.T) {
	p := newPair(t)
	p.write("a", "1")
	p.write("b", "1")
	config := p.config()
	config.Every = time.Hour
	files, err := reload.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	p.write("a", "2")
	p.write("b", "2")
	if got := files.Get(); got != "1" {
		t.Errorf("got %q: the files were read again at once", got)
	}
}
