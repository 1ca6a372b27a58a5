// Package manual prints the manual page of a process, which --help shows: its services and
// its flags. It decides how the page looks, and nothing about what is on it.
package manual

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Width is the length of the longest lines.
const Width = 88

// Page is the manual page of a process.
type Page struct {
	Name, About string
	Services    []Service
	Sections    []Section
	// Required reports whether a flag must be given.
	Required func(*pflag.Flag) bool
}

// Service is one service in the process.
type Service struct{ Name, About string }

// Section is a group of flags.
type Section struct {
	Title string
	Flags *pflag.FlagSet
}

// Print writes the page.
func (p Page) Print(w io.Writer) {
	fmt.Fprintf(w, "NAME\n    %s\n\nSYNOPSIS\n    %s [--flag=value ...]\n\nDESCRIPTION\n", p.Name, p.Name)
	printWrapped(w, "    ", p.About)
	fmt.Fprint(w, "\n    Services in this process, in the order of their start:\n\n")
	for _, s := range p.Services {
		fmt.Fprintf(w, "    %s\n", s.Name)
		printWrapped(w, "        ", s.About)
	}
	fmt.Fprint(w, "\nFLAGS\n")
	for _, s := range p.Sections {
		if s.Flags.HasFlags() {
			p.printSection(w, s)
		}
	}
	fmt.Fprint(w, `SIGNALS
    SIGTERM and SIGINT stop the process after work in progress has ended. A second one
    ends it at once.

EXIT STATUS
    0  stopped by a signal, or --help
    1  a service failed
    2  usage error: unknown, missing or contradictory flags
`)
}

func (p Page) printSection(w io.Writer, s Section) {
	fmt.Fprintf(w, "  %s\n", s.Title)
	s.Flags.VisitAll(func(f *pflag.Flag) {
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
		case p.Required(f):
			usage += " (required)"
		case hasDefault(f):
			usage += " (default " + f.DefValue + ")"
		}
		printWrapped(w, "        ", usage)
	})
	fmt.Fprintln(w)
}

// hasDefault reports whether a flag has a default other than the zero value.
func hasDefault(f *pflag.Flag) bool {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
		return false
	}
	return true
}

// printWrapped writes a text in lines of at most Width characters.
func printWrapped(w io.Writer, indent, text string) {
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line) > len(indent) && len(line)+1+len(word) > Width {
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
