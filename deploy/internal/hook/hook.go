// Package hook is what the hooks of the Helm chart run, in an image without a shell:
// the identities of the suite are kept as Secrets of the cluster that it runs in, and
// the front door is asked whether it is ready. It decides how folders of package pki
// become Secrets; what is in them is decided there.
package hook

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
)

const manual = `portico hook is what the hooks of the Helm chart run.

  portico hook identities [flags]  make the identities of the suite, or renew them, and keep them as Secrets
  portico hook ready [flags]       wait until the front door is ready

Exit status: 0 done, 1 failed, 2 called in a wrong way.
`

// errUsage marks errors about how the command was called.
var errUsage = errors.New("usage")

// Main runs one command and returns the exit status of the process.
func Main(ctx context.Context, args []string, out, errs io.Writer) int {
	err := command(ctx, args, out)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(errs, "portico hook: %v (portico hook --help tells more)\n", err)
		return 2
	default:
		fmt.Fprintf(errs, "portico hook: %v\n", err)
		return 1
	}
}

func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: a command is missing: identities or ready", errUsage)
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
		return fmt.Errorf("%w: there is no command %q", errUsage, args[0])
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
