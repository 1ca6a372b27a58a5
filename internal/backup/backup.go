// Package backup saves what a suite has stored, and puts it back: a snapshot of etcd with
// a manifest of what is in it, in a folder that appears whole or not at all. Of an
// all-in-one, it also keeps the files of its data folder that cannot be made again.
//
// It decides what makes a backup complete and at which revision a restored suite goes on;
// how etcd's files are made is etcdutl's part. It serves "Persistence" of the specification.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/internal/progress"
)

const manual = `portico backup saves what a suite has stored, and portico restore puts it back.

  portico backup create FOLDER [flags]  save a running suite, or the data folder of an all-in-one that has stopped
  portico backup verify FOLDER          check that a backup is whole and as it was made
  portico restore FOLDER [flags]        make new data folders of a backup

FOLDER must not exist yet for create. It holds secrets: whoever reads it can do everything.
Exit status: 0 done, 1 failed, 2 called in a wrong way. docs/operations/backup.md is the guide.
`

// errUsage marks errors about how the command was called.
var errUsage = errors.New("usage")

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

// Main runs portico backup, or portico restore, and returns the exit status of the process.
func Main(ctx context.Context, args []string, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // to leave nothing half made
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	err := command(ctx, args, streams{out, errs})
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		plain.Fprintf(errs, "portico %s: %v (see portico %s --help)\n", args[0], err, args[0])
		return 2
	default:
		plain.Fprintf(errs, "portico %s: %v\n", args[0], err)
		return 1
	}
}

// streams are the standard output and error of a command. Bars are drawn on the latter.
type streams struct{ out, errs io.Writer }

// bar returns a bar for work on a number of bytes.
func (s streams) bar(label string, total int64) *progress.Bar {
	return progress.Start(s.errs, label, total, progress.Bytes)
}

// action does what a command is for, with the one argument of the command.
type action func(ctx context.Context, folder string, s streams) error

func command(ctx context.Context, args []string, s streams) error {
	name, args := args[0], args[1:]
	commands := map[string]func(*pflag.FlagSet) action{"restore": restoreFlags}
	if name == "backup" {
		if len(args) == 0 {
			return usagef("a command is missing: create or verify")
		}
		name, args = args[0], args[1:]
		commands = map[string]func(*pflag.FlagSet) action{"create": createFlags, "verify": verifyFlags}
	}
	if name == "--help" || name == "-h" || name == "help" {
		_, err := io.WriteString(s.out, manual)
		return err
	}
	if commands[name] == nil {
		return usagef("there is no command %q", name)
	}
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	run := commands[name](flags)
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := fmt.Fprintf(s.out, "%s\nFlags of %s:\n%s", manual, name, flags.FlagUsages())
		return err
	case err != nil:
		return usagef("%v", err)
	case flags.NArg() != 1:
		return usagef("%s takes the folder of the backup, and %d arguments were given", name, flags.NArg())
	}
	return run(ctx, flags.Arg(0), s)
}
