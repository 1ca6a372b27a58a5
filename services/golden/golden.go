// Package golden runs golden-file tests: input and output together in YAML, or whole
// outputs. With -update a test writes the actual outputs to the files; review the diff
// before it is committed. Only tests import it.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// update is set by go test -update.
var update = flag.Bool("update", false, "write the actual outputs of the test cases to their files")

// Updating reports whether a test has to write what it compares.
func Updating() bool { return *update }

// Run runs all cases in the YAML files of testdata. A file holds cases by name; run
// returns the case with its actual outputs.
func Run[Case any](t *testing.T, run func(t *testing.T, name string, c Case) Case) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			cases := map[string]Case{}
			if err := yaml.UnmarshalStrict(content, &cases); err != nil {
				t.Fatal(err)
			}
			for name, want := range cases {
				got := run(t, name, want)
				if *update {
					cases[name] = got
				} else if g, w := text(t, got), text(t, want); g != w {
					t.Errorf("%s: got\n%s\nwant\n%s", name, g, w)
				}
			}
			if *update {
				write(t, file, []byte(text(t, cases)))
			}
		})
	}
}

// File compares got with a file of testdata.
func File(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		write(t, file, got)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	content, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
