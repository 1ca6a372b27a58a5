package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func configurable() App {
	return App{Name: "test", Services: []Service{{
		Name: "one",
		Flags: func(fs *pflag.FlagSet) {
			fs.Int("secure-port", 6443, "")
			fs.Bool("profiling", false, "")
			fs.String("data-dir", "", "")
			fs.StringSlice("suites", nil, "")
			fs.StringArray("key-file", nil, "")
		},
		Start: func(context.Context, *Node) error { return nil },
	}}}
}

// TestExpand: flags come before the environment, and that before the configuration file.
func TestExpand(t *testing.T) {
	for name, c := range map[string]struct {
		file          string
		environ, args []string
		want          []string
		err           string
	}{
		"nothing":          {args: []string{"--secure-port=1"}},
		"environment":      {environ: []string{"PORTICO_SECURE_PORT=1", "PORTICO_SERVICE_HOST=10.0.0.1", "PORTICO_PROFILING="}, want: []string{"--secure-port=1"}},
		"flag first":       {environ: []string{"PORTICO_SECURE_PORT=1"}, args: []string{"--secure-port", "2"}},
		"wrong variable":   {environ: []string{"PORTICO_SECURE_PORT=tcp://10.0.0.1:443"}, err: `PORTICO_SECURE_PORT: "tcp://10.0.0.1:443" is not a number`},
		"file":             {file: "secure-port: 1\nprofiling: true\ndata-dir: a=b\n", want: []string{"--data-dir=a=b", "--profiling=true", "--secure-port=1"}},
		"lists":            {file: `{"suites": ["a,b", "c"], "key-file": ["a,b", "c"]}`, want: []string{"--key-file=a,b", "--key-file=c", `--suites="a,b",c`}},
		"map":              {file: "feature-gates: {B: false, A: true}\n", want: []string{"--feature-gates=A=true,B=false"}},
		"file last":        {file: "secure-port: 1\nprofiling: true\n", environ: []string{"PORTICO_SECURE_PORT=2"}, args: []string{"--profiling=false"}, want: []string{"--secure-port=2"}},
		"lists not joined": {file: "suites: [a]\n", args: []string{"--suites=b"}},
		"unknown key":      {file: "secure-prot: 1\n", err: `unknown key "secure-prot"; did you mean secure-port?`},
		"file in file":     {file: "config: other\n", err: `unknown key "config"`},
		"list for one":     {file: "data-dir: [a]\n", err: "data-dir: must be a single value, not a list"},
		"map for one":      {file: "data-dir: {a: b}\n", err: "data-dir: must be a single value or a list, not a map"},
		"no value":         {file: "data-dir:\n", err: "data-dir: has no value"},
		"nested list":      {file: "suites: [[a]]\n", err: "suites: must be"},
		"not a number":     {file: "secure-port: x\n", err: `secure-port: "x" is not a number`},
		"not a bool":       {file: "profiling: 7\n", err: `profiling: "7" is neither true nor false`},
		"twice":            {file: "data-dir: a\ndata-dir: b\n", err: "data-dir"},
		"no map":           {file: "[]", err: "it is not a map from names of flags to values"},
		"too long":         {file: strings.Repeat("#", maxConfig+1), err: "are more than"},
	} {
		t.Run(name, func(t *testing.T) {
			args := c.args
			if c.file != "" {
				path := filepath.Join(t.TempDir(), "file")
				if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append([]string{"--config=" + path}, args...)
			}
			got, err := Expand(configurable(), args, c.environ)
			if c.err != "" {
				if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want a usage error with %q", err, c.err)
				}
				return
			}
			want := append(slices.Clone(c.want), args...)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}

// TestMissingConfig: a configuration file that cannot be read is an error that names it, also when the environment names it.
func TestMissingConfig(t *testing.T) {
	_, err := Expand(configurable(), nil, []string{"PORTICO_CONFIG=/nowhere"})
	if !errors.Is(err, ErrUsage) || err.Error() != "--config: /nowhere: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

// FuzzExpand: no file makes Expand panic, or yield arguments that do not parse.
func FuzzExpand(f *testing.F) {
	for _, text := range []string{"secure-port: 1", "suites: [a, 'b,c', \"\"]", "feature-gates: {A: true}", "key-file: [\"\\n\"]", "a: &a [*a]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args, err := Expand(configurable(), []string{"--config=" + path}, nil)
		if err != nil {
			return
		}
		flags, err := flagsOf(configurable())
		if err != nil {
			t.Fatal(err)
		}
		if err := flags.Parse(args); err != nil {
			t.Errorf("%q gives %q: %v", text, args, err)
		}
	})
}
