// Package hook implements the hooks of the Helm chart, for an image without a shell: it
// stores the identities of the suite as Secrets of the cluster in which it runs, and waits
// until the front door is ready. It decides how folders of package pki become Secrets;
// package pki decides what they contain.
package hook

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/internal/plain"
)

const manual = `portico hook runs the hooks of the Helm chart.

  portico hook identities [flags]  create or renew the identities of the suite and store them as Secrets
  portico hook ready [flags]       wait until the front door is ready

Exit status: 0 success, 1 failure, 2 usage error.
`

// errUsage marks usage errors.
var errUsage = errors.New("usage")

// Main runs one command and returns the exit status of the process.
func Main(ctx context.Context, args []string, out, errs io.Writer) int {
	err := command(ctx, args, out)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		plain.Fprintf(errs, "portico hook: %v (see portico hook --help)\n", err)
		return 2
	default:
		plain.Fprintf(errs, "portico hook: %v\n", err)
		return 1
	}
}

func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: missing command: identities or ready", errUsage)
	}
	flags := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var run func(context.Context, io.Writer) error
	switch args[0] {
	case "--help", "-h", "help":
		_, err := io.WriteString(out, manual)
		return err
	case "identities":
		run = identitiesFlags(flags)
	case "ready":
		run = readyFlags(flags)
	default:
		return fmt.Errorf("%w: unknown command %q", errUsage, args[0])
	}
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := fmt.Fprintf(out, "%s\nFlags of %s:\n%s", manual, args[0], flags.FlagUsages())
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() > 0:
		return fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	}
	return run(ctx, out)
}
