// Package auditlog is the command "audit", which verifies that no line of an audit log was edited, removed or
// moved. The chain of the lines is that of services/kit/auditchain.
package auditlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/services/kit/auditchain"
)

// Exit statuses.
const (
	passed = iota
	failed
	misused
)

const usage = `portico audit verify [flags] FILE...

Verifies that no line of an audit log was edited, removed or moved. Specify all its files, in any order: the
file of --audit-log-path and all rotated ones, also compressed. The oldest files may be missing; where the log begins
is printed. The .head file beside the log shows whether lines at the end are missing: without it, and without --expect,
the log is not intact.

Exit status: 0 the log is intact, 1 it is not, 2 a file cannot be read, or usage error.

`

// maxShown bounds the problems that are printed.
const maxShown = 100

// Main runs the command and returns its exit status.
func Main(args []string, out, errs io.Writer) int {
	flags := pflag.NewFlagSet("audit", pflag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() { _, _ = fmt.Fprint(errs, usage, flags.FlagUsages()) }
	keyFile := flags.String("key-file", "", "`file` of --audit-log-chain-key-file")
	var limits limits
	flags.StringVar(&limits.last, "expect", "", "`link` that the last line must have or follow, as printed by an earlier verification")
	flags.StringVar(&limits.first, "expect-first", "", "`link` that the first line must have or precede, as printed by an earlier verification")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return passed
		}
		_, _ = plain.Fprintf(errs, "%v\n", err)
		return misused
	}
	if flags.NArg() < 2 || flags.Arg(0) != "verify" {
		flags.Usage()
		return misused
	}
	whole, err := verify(flags.Args()[1:], *keyFile, limits, out)
	switch {
	case err != nil:
		_, _ = plain.Fprintf(errs, "%v\n", err)
		return misused
	case !whole:
		return failed
	}
	return passed
}

// verify prints the result, and reports whether the log is whole.
func verify(paths []string, keyFile string, expected limits, out io.Writer) (bool, error) {
	var key auditchain.Key
	if keyFile != "" {
		content, err := os.ReadFile(keyFile) //nolint:gosec // named by the operator
		if err != nil {
			return false, err
		}
		if key, err = auditchain.ParseKey(content); err != nil {
			return false, fmt.Errorf("%s: %w", keyFile, err)
		}
	}
	least, known, err := heads(paths, expected.last)
	if err != nil {
		return false, err
	}
	first, err := expected.firstLink()
	if err != nil {
		return false, err
	}
	r, err := auditchain.Verify(key, paths...)
	if err != nil {
		return false, err
	}
	for i, p := range r.Problems {
		if i == maxShown {
			_, _ = plain.Fprintf(out, "and %d more\n", len(r.Problems)-maxShown)
			break
		}
		_, _ = plain.Fprintf(out, "%s\n", p)
	}
	whole := len(r.Problems) == 0
	for _, link := range least {
		if r.Last.N < link.N || r.Last.N == link.N && r.Last != link {
			_, _ = plain.Fprintf(out, "the log ends with line %d, but line %d was written: lines at the end are missing\n", r.Last.N, link.N)
			whole = false
		}
	}
	if !known {
		_, _ = fmt.Fprintln(out, "no .head file found: missing lines at the end cannot be detected (use --expect if it is lost)")
		whole = false
	}
	whole = begins(r, first, out) && whole
	_, _ = plain.Fprintf(out, "%d lines, from %d to %d, problems: %d, link: %s\n", r.Lines, r.First.N, r.Last.N, len(r.Problems), r.Last)
	return whole, nil
}

// limits are the links that the first and the last line must have at least; empty for any.
type limits struct{ first, last string }

// firstLink returns the link of --expect-first; nil for any.
func (l limits) firstLink() (*auditchain.Link, error) {
	if l.first == "" {
		return nil, nil
	}
	link, err := auditchain.ParseLink(l.first)
	if err != nil {
		return nil, fmt.Errorf("--expect-first: %w", err)
	}
	return &link, nil
}

// begins prints where the log begins, if that is not line 1, and reports whether it begins as expected.
func begins(r auditchain.Report, first *auditchain.Link, out io.Writer) bool {
	if r.First.N > 1 {
		_, _ = plain.Fprintf(out, "warning: the log begins at line %d, link: %s\n", r.First.N, r.First)
	}
	if r.Unproven {
		_, _ = plain.Fprintf(out, "warning: line %d cannot be verified without the line before it, because an earlier release wrote it\n", r.First.N)
	}
	if first == nil || r.First.N < first.N || r.First == *first {
		return true
	}
	_, _ = plain.Fprintf(out, "the log does not begin with line %d or before: lines at the beginning are missing or were exchanged\n", first.N)
	return false
}

// rotated is the name of a rotated file: that of the log with the time before its extension.
var rotated = regexp.MustCompile(`-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}(\.[^./]*)?(\.gz)?$`)

// logs returns the files whose .head may be that of a log: themselves, and the logs that they were rotated from.
func logs(paths []string) (all []string) {
	for _, path := range paths {
		all = append(all, path)
		if at := rotated.FindStringSubmatchIndex(path); at != nil {
			extension := ""
			if at[2] >= 0 {
				extension = path[at[2]:at[3]]
			}
			all = append(all, path[:at[0]]+extension)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// heads returns the links that the log has had at least. They are read before the log, which may be in use.
func heads(paths []string, expected string) (links []auditchain.Link, known bool, err error) {
	if expected != "" {
		link, err := auditchain.ParseLink(expected)
		if err != nil {
			return nil, false, fmt.Errorf("--expect: %w", err)
		}
		links, known = append(links, link), true
	}
	for _, path := range logs(paths) {
		link, err := auditchain.ReadHead(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return nil, false, err
		default:
			links, known = append(links, link), true
		}
	}
	return links, known, nil
}
