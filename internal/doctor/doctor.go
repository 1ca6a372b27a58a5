// Package doctor examines a running suite from outside: what its processes say on their
// status ports, its certificates, etcd, and what users of NATS may do. It changes nothing.
//
// It decides which findings are harmless, which are warnings and which are failures, and
// says for each what to do. It serves "Health endpoints" of the specification.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/services/kit/etcd"
)

const manual = `portico doctor checks a running suite and prints advice for each problem.

  portico doctor [flags]

Each flag adds checks; specify as many as possible. Nothing is changed.
Exit status: 0 no failure, perhaps warnings, 1 a failure, 2 usage error.
docs/operations/doctor.md lists the checks.
`

const (
	// timeout bounds one question.
	timeout = 5 * time.Second
	// soon is how long before its end a certificate is worth a warning.
	soon = 14 * 24 * time.Hour
)

// errUsage marks errors about how the command was called.
var errUsage = errors.New("usage")

// Status is how bad a finding is.
type Status string

// The statuses, from good to bad.
const (
	OK   Status = "OK"
	Warn Status = "WARN"
	Fail Status = "FAIL"
)

// Finding is the outcome of one check.
type Finding struct {
	Status Status `json:"status"`
	// Check is the name of the check, as in docs/operations/doctor.md.
	Check string `json:"check"`
	// Subject is what was examined: a process, a file, a member.
	Subject string `json:"subject"`
	// Found is what was found, and Advice what to do about it.
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"`
}

// examination collects findings.
type examination struct {
	now      func() time.Time
	findings []Finding
}

func (e *examination) ok(check, subject, format string, args ...any) {
	e.findings = append(e.findings, Finding{Status: OK, Check: check, Subject: subject, Found: fmt.Sprintf(format, args...)})
}

// bad adds a finding that needs advice.
func (e *examination) bad(f Finding) { e.findings = append(e.findings, f) }

// worst returns the status of all findings together.
func (e *examination) worst() Status {
	worst := OK
	for _, f := range e.findings {
		if f.Status == Fail || f.Status == Warn && worst == OK {
			worst = f.Status
		}
	}
	return worst
}

// Main runs the command and returns the exit status of the process.
func Main(ctx context.Context, args []string, out, errs io.Writer) int {
	e := &examination{now: time.Now}
	err := e.command(ctx, args, out)
	switch {
	case errors.Is(err, errUsage):
		plain.Fprintf(errs, "portico doctor: %v (see portico doctor --help)\n", err)
		return 2
	case err != nil:
		plain.Fprintf(errs, "portico doctor: %v\n", err)
		return 1
	case e.worst() == Fail:
		return 1
	}
	return 0
}

func (e *examination) command(ctx context.Context, args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("doctor", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig `file` of the front door and the user")
	processes := flags.StringSlice("status-addresses", nil, "comma-separated status `addresses` (host:port) of all processes of the suite")
	identities := flags.String("pki", "", "`folder` of portico pki")
	bus := flags.String("nats-url", "", "comma-separated `URLs` of the NATS servers; the users are those of --pki")
	output := flags.String("output", "text", "`form` of the findings: text or json")
	etcd.Flags(flags)
	etcd.OverrideFlag(flags)
	if err := flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		_, err := fmt.Fprintf(out, "%s\nFlags:\n%s", manual, flags.FlagUsages())
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	clusters, err := etcdClusters(flags)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() > 0:
		return fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	case *output != "text" && *output != "json":
		return fmt.Errorf("%w: --output: %q is neither text nor json", errUsage, *output)
	case *bus != "" && *identities == "":
		return fmt.Errorf("%w: --nats-url needs --pki, which has the users of NATS", errUsage)
	case *kubeconfig == "" && *identities == "" && len(*processes)+len(clusters) == 0:
		return fmt.Errorf("%w: nothing to check: specify --kubeconfig, --status-addresses, --etcd-servers or --pki", errUsage)
	}
	if *kubeconfig != "" {
		if err := e.frontDoor(ctx, *kubeconfig); err != nil {
			return fmt.Errorf("%w: --kubeconfig: %w", errUsage, err)
		}
	}
	if len(*processes) > 0 {
		e.processes(ctx, *processes)
	}
	for _, c := range clusters {
		e.etcd(ctx, c)
	}
	if *identities != "" {
		e.identities(*identities)
	}
	if *bus != "" {
		e.bus(*identities, *bus)
	}
	return e.print(out, *output)
}

// print writes the findings.
func (e *examination) print(out io.Writer, form string) error {
	if form == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Status   Status    `json:"status"`
			Findings []Finding `json:"findings"`
		}{e.worst(), e.findings})
	}
	counts := map[Status]int{}
	for _, f := range e.findings {
		counts[f.Status]++
		plain.Fprintf(out, "%-4s  %-14s %s: %s\n", f.Status, f.Check, f.Subject, f.Found)
		if f.Advice != "" {
			plain.Fprintf(out, "      %-14s -> %s\n", "", f.Advice)
		}
	}
	_, err := plain.Fprintf(out, "%d OK, %d WARN, %d FAIL\n", counts[OK], counts[Warn], counts[Fail])
	return err
}
