// Package cli is the command line of portico: one tree of commands, of which serve, the default, runs the suite. It decides
// the names, groups and exit statuses of commands, and nothing about what they do.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/portico-platform/portico/internal/admissionproject"
	"github.com/portico-platform/portico/internal/auditlog"
	"github.com/portico-platform/portico/internal/backup"
	"github.com/portico-platform/portico/internal/doctor"
	"github.com/portico-platform/portico/internal/hook"
	"github.com/portico-platform/portico/internal/pki/command"
	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/internal/testassets"
	"github.com/portico-platform/portico/internal/tools"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/build"
)

// The groups of commands.
const (
	running, operating, developing = "running", "operating", "developing"
)

// Main runs the command of the arguments, without the name of the program, and returns the exit status: 0, 1 after a
// failure, 2 for a usage error. app returns the suite for arguments of serve.
func Main(ctx context.Context, app func(args []string) run.App, args []string, out, errs io.Writer) int {
	status := 0
	root := tree(app, &status, out, errs)
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		return run.ExitStatus(err, "portico", plain.NewWriter(errs))
	}
	return status
}

// tree returns the commands. Those that parse their own flags set the status.
func tree(app func(args []string) run.App, status *int, out, errs io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "portico", Short: "Serves the API of Kubernetes, and works with suites that do",
		Long: "portico serves the API of Kubernetes. Without a command it runs the whole suite in one process, as portico serve does;\n" +
			"portico serve --help lists the flags.",
		SilenceUsage: true, SilenceErrors: true, SuggestionsMinimumDistance: 2,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			message := fmt.Sprintf("unknown command %q", args[0])
			if similar := c.SuggestionsFor(args[0]); len(similar) > 0 {
				message += "; did you mean " + strings.Join(similar, " or ") + "?"
			}
			return run.Usagef("%s", message)
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(out)
	root.SetErr(errs)
	root.AddGroup(&cobra.Group{ID: running, Title: "Run a suite:"}, &cobra.Group{ID: operating, Title: "Work with a running suite:"},
		&cobra.Group{ID: developing, Title: "Develop with it:"})
	// own is a command that parses its flags itself.
	own := func(group, use, short string, main func(ctx context.Context, args []string, out, errs io.Writer) int) {
		root.AddCommand(&cobra.Command{Use: use, Short: short, GroupID: group, DisableFlagParsing: true, Run: func(c *cobra.Command, args []string) {
			*status = main(c.Context(), args, out, errs)
		}})
	}
	own(running, "serve", "Runs the suite in one process (the default)", func(_ context.Context, args []string, _, _ io.Writer) int {
		Serve(app, args)
		return 0
	})
	root.AddCommand(configuration(app))
	for _, c := range root.Commands() { // those with the flags of serve
		c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return run.FlagNames(app(nil)), cobra.ShellCompDirectiveDefault
		}
	}
	own(running, "pki", "Creates and renews the certificates of separate processes", local(command.Main))
	own(running, "hook", "Creates and checks what a Helm release needs; the chart runs it", hook.Main)
	own(operating, "backup", "Saves the stored objects", named("backup", backup.Main))
	own(operating, "restore", "Restores a backup", named("restore", backup.Main))
	own(operating, "doctor", "Checks a running suite and says what to do", doctor.Main)
	own(operating, "audit", "Verifies an audit log", local(auditlog.Main))
	own(developing, "admission", "Creates the project of an admission service", local(admissionproject.Main))
	own(developing, "envtest", "Creates the programs that envtest starts", local(testassets.Main))
	for _, c := range tools.Commands(out) {
		c.GroupID = operating
		root.AddCommand(c)
	}
	root.AddCommand(version())
	tools.MarkUsage(root)
	return root
}

// Serve runs the suite until a signal, and exits.
func Serve(app func(args []string) run.App, args []string) {
	args, err := run.Expand(app(nil), args, os.Environ())
	if err != nil {
		os.Exit(run.ExitStatus(err, "portico", os.Stderr))
	}
	run.MainOf(app(args), args)
}

// local adapts a command that makes no network calls.
func local(command func(args []string, out, errs io.Writer) int) func(context.Context, []string, io.Writer, io.Writer) int {
	return func(_ context.Context, args []string, out, errs io.Writer) int { return command(args, out, errs) }
}

// named adapts a command that takes its name as first argument.
func named(name string, command func(ctx context.Context, args []string, out, errs io.Writer) int) func(context.Context, []string, io.Writer, io.Writer) int {
	return func(ctx context.Context, args []string, out, errs io.Writer) int {
		return command(ctx, append([]string{name}, args...), out, errs)
	}
}

// configuration returns the command that prints the settings of serve.
func configuration(app func(args []string) run.App) *cobra.Command {
	return &cobra.Command{
		Use: "config [--print] [--all] [FLAGS OF SERVE]", Short: "Prints the settings of serve as a configuration file", GroupID: running, DisableFlagParsing: true,
		Long: "Prints the settings that flags, environment variables (PORTICO_SECURE_PORT for --secure-port) and the file of --config give,\n" +
			"as a configuration file: what differs from the defaults, or everything with --all.",
		RunE: func(c *cobra.Command, args []string) error {
			var rest []string
			all := false
			for _, arg := range args {
				switch arg {
				case "--help", "-h":
					return c.Help()
				case "--all":
					all = true
				case "--print":
				default:
					rest = append(rest, arg)
				}
			}
			rest, err := run.Expand(app(nil), rest, os.Environ())
			if err == nil {
				err = run.Configuration(c.OutOrStdout(), app(rest), rest, all)
			}
			return err
		},
	}
}

// version returns the command that prints what the program was built from.
func version() *cobra.Command {
	var output string
	c := &cobra.Command{Use: "version", Short: "Prints the version of the program", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		if output != "" && output != "json" && output != "yaml" {
			return run.Usagef("--output: unknown format %q: use json or yaml", output)
		}
		return build.Current().Print(c.OutOrStdout(), output)
	}}
	c.Flags().StringVarP(&output, "output", "o", "", "`format` of the output: empty for a line, json or yaml")
	return c
}
