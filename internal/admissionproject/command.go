// Package admissionproject writes the project of a new admission service: a Go module with a
// handler, its tests and manifests, on the module admission/sdk. It decides where the project
// finds the SDK, and never changes a folder that exists.
package admissionproject

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/internal/plain"
)

const manual = `portico admission creates admission services.

  portico admission new NAME [flags]  create the project of a new service

Exit status: 0 success, 1 failure, 2 usage error.
See docs/admission-services.md.
`

// errUsage marks usage errors.
var errUsage = errors.New("usage")

// Main runs one command and returns the exit status of the process.
func Main(args []string, out, errs io.Writer) int {
	err := command(args, out)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		plain.Fprintf(errs, "portico admission: %v (see portico admission --help)\n", err)
		return 2
	default:
		plain.Fprintf(errs, "portico admission: %v\n", err)
		return 1
	}
}

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

func command(args []string, out io.Writer) error {
	if len(args) == 0 {
		return usagef("missing command: new")
	}
	if args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
		_, err := io.WriteString(out, manual)
		return err
	}
	if args[0] != "new" {
		return usagef("unknown command %q", args[0])
	}
	p := project{}
	flags := pflag.NewFlagSet("new", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&p.Dir, "dir", "", "`folder` of the project, which must not exist; default: ./NAME")
	flags.StringVar(&p.Module, "module", "", "`path` of its Go module; default: example.com/NAME")
	flags.StringVar(&p.Source, "source", "", "`folder` of a checkout of Portico whose SDK the project uses; default: the one that contains the current folder or this program")
	flags.StringVar(&p.Version, "sdk-version", "", "`version` of the SDK, such as v1.2.3, instead of --source")
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := fmt.Fprintf(out, "%s\nFlags of new:\n%s", manual, flags.FlagUsages())
		return err
	case err != nil:
		return usagef("%v", err)
	case flags.NArg() != 1:
		return usagef("new needs one NAME")
	}
	p.Name = flags.Arg(0)
	if err := p.complete(); err != nil {
		return err
	}
	if err := p.write(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s has the admission service %s. Next:\n\n  cd %s\n%s  go mod tidy\n  go test ./...\n  go run . --status-address=127.0.0.1:9445\n\nIts README.md says how to register it.\n",
		p.Dir, p.Name, p.Dir, outside(p.Dir))
	return err
}

// outside returns the command by which a project in a workspace of others builds on its own.
func outside(dir string) string {
	if _, found := above(dir, "go.work"); found {
		return "  export GOWORK=off\n"
	}
	return ""
}

// above returns the nearest folder that has a file, upwards from dir.
func above(dir, file string) (string, bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
