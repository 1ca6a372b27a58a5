package run

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

const helpWidth = 88

// section is a group of flags in --help.
type section struct {
	title string
	flags *pflag.FlagSet
}

// printHelp writes the manual page of an app.
func printHelp(w io.Writer, app App, sections []section) {
	fmt.Fprintf(w, "NAME\n    %s\n\nSYNOPSIS\n    %s [--flag=value ...]\n\nDESCRIPTION\n", app.Name, app.Name)
	printWrapped(w, "    ", app.About)
	fmt.Fprint(w, "\n    Services in this process, in the order of their start:\n\n")
	for _, s := range app.Services {
		fmt.Fprintf(w, "    %s\n", s.Name)
		printWrapped(w, "        ", s.About)
	}
	fmt.Fprint(w, "\nFLAGS\n")
	for _, s := range sections {
		if s.flags.HasFlags() {
			printSection(w, s)
		}
	}
	fmt.Fprint(w, `SIGNALS
    SIGTERM and SIGINT stop the process: work in progress may end first. A second one
    ends it at once.

EXIT STATUS
    0  stopped by a signal, or --help
    1  a service failed
    2  called in a wrong way: unknown, missing or contradictory flags
`)
}

func printSection(w io.Writer, s section) {
	fmt.Fprintf(w, "  %s\n", s.title)
	s.flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind == "" {
			fmt.Fprintf(w, "    --%s\n", f.Name)
		} else {
			fmt.Fprintf(w, "    --%s=<%s>\n", f.Name, kind)
		}
		switch {
		case f.Annotations[annotationRequired] != nil:
			usage += " (required)"
		case hasDefault(f):
			usage += " (default " + f.DefValue + ")"
		}
		printWrapped(w, "        ", usage)
	})
	fmt.Fprintln(w)
}

// hasDefault reports whether a flag's default says more than "nothing".
func hasDefault(f *pflag.Flag) bool {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
		return false
	}
	return true
}

// printWrapped writes a text in lines of at most helpWidth.
func printWrapped(w io.Writer, indent, text string) {
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line) > len(indent) && len(line)+1+len(word) > helpWidth {
			fmt.Fprintln(w, line)
			line = indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}
