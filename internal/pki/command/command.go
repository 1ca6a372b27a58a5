// Package command is `portico pki`: the commands and their flags, and what they print. What they do
// is decided in package pki. It serves "Authentication" and "What the service does" of the
// specification.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/internal/pki"
	"github.com/portico-platform/portico/internal/plain"
)

const manual = `portico pki creates the certificates and keys of services that run as separate processes.

  portico pki init [flags]           create a folder with all identities; it must not exist
  portico pki issue SERVICE [flags]  create the folder of one process, with new keys
  portico pki renew [flags]          renew the certificates that expire soon; the keys stay the same
  portico pki inspect [flags]        print a table of all certificates

Exit status: 0 success, 1 failure, or inspect found expiring certificates, unprotected files, or files that do not
belong together, 2 usage error. Commands wait for each other, and complete what an interrupted one has begun.
See docs/operations/certificates.md for the folders of the processes and the flags for the files.
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
		plain.Fprintf(errs, "portico pki: %v (see portico pki --help)\n", err)
		return 2
	default:
		plain.Fprintf(errs, "portico pki: %v\n", err)
		return 1
	}
}

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

func command(args []string, out io.Writer) error {
	commands := map[string]func(*call) error{"init": initialize, "issue": issue, "renew": renew, "inspect": inspect}
	if len(args) == 0 {
		return usagef("missing command: init, issue, renew or inspect")
	}
	if args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
		_, err := io.WriteString(out, manual)
		return err
	}
	run := commands[args[0]]
	if run == nil {
		return usagef("unknown command %q", args[0])
	}
	c := &call{flags: pflag.NewFlagSet(args[0], pflag.ContinueOnError), args: args[1:], out: out}
	c.flags.SetOutput(io.Discard)
	c.flags.StringVar(&c.dir, "dir", "./portico-pki", "`folder` of the identities")
	err := run(c)
	if errors.Is(err, pflag.ErrHelp) {
		_, err = fmt.Fprintf(out, "%s\nFlags of %s:\n%s", manual, args[0], c.flags.FlagUsages())
	}
	return err
}

// call is one command with its arguments.
type call struct {
	flags *pflag.FlagSet
	args  []string
	out   io.Writer
	dir   string
}

// parse parses the flags and checks the number of other arguments.
func (c *call) parse(arguments int) error {
	if err := c.flags.Parse(c.args); errors.Is(err, pflag.ErrHelp) {
		return err
	} else if err != nil {
		return usagef("%v", err)
	}
	if c.flags.NArg() != arguments {
		return usagef("%s takes %d arguments, not %d", c.flags.Name(), arguments, c.flags.NArg())
	}
	return nil
}

func initialize(c *call) error {
	var site pki.Site
	var remote string
	c.flags.StringVar(&site.Server, "server", "https://127.0.0.1:6443", "`URL` at which the administrator reaches the front door")
	c.flags.StringVar(&site.WorkersServer, "workers-server", "", "`URL` at which the workers reach the front door; --server if empty")
	c.flags.StringSliceVar(&site.FrontdoorHosts, "frontdoor-hosts", nil, "more `names` and addresses of the front door, separated by commas")
	c.flags.StringSliceVar(&site.EtcdMembers, "etcd-members", []string{"etcd-1", "etcd-2", "etcd-3"}, "`hosts` of etcd's members; each gets a folder with that name")
	c.flags.StringSliceVar(&site.NATSServers, "nats-servers", []string{"nats-1", "nats-2", "nats-3"}, "`hosts` of the NATS servers; each gets a folder with that name")
	c.flags.DurationVar(&site.Validity.Duration, "validity", 365*24*time.Hour, "validity of certificates; they cannot be revoked")
	c.flags.DurationVar(&site.AuthorityValidity.Duration, "authority-validity", 10*365*24*time.Hour, "validity of certificate authorities")
	c.flags.StringVar(&remote, "cas", "", "`file` with the configuration of remote authorities: a JSON object of smallstep's cas configurations by authority name")
	if err := c.parse(0); err != nil {
		return err
	}
	if site.WorkersServer == "" {
		site.WorkersServer = site.Server
	}
	if remote != "" {
		content, err := os.ReadFile(remote)
		if err != nil {
			return usagef("--cas: %v", err)
		}
		if err := json.Unmarshal(content, &site.CAS); err != nil {
			return usagef("--cas: %v", err)
		}
	}
	if err := site.Check(); err != nil {
		return usagef("%v", err)
	}
	if err := pki.Init(c.dir, site); err != nil {
		return err
	}
	_, err := plain.Fprintf(c.out, "created %s with a folder for each process; do not give %s/authorities to any process\n", c.dir, c.dir)
	return err
}

// edit changes the identities while no other process does.
func (c *call) edit(change func(*pki.PKI) error) error {
	p, err := pki.Edit(c.dir)
	if err != nil {
		return err
	}
	return errors.Join(change(p), p.Close())
}

func issue(c *call) error {
	replace := c.flags.Bool("replace", false, "replace the existing folder of the process, with new keys")
	if err := c.parse(1); err != nil {
		return err
	}
	if err := c.edit(func(p *pki.PKI) error { return p.Issue(c.flags.Arg(0), *replace) }); err != nil {
		return err
	}
	_, err := plain.Fprintf(c.out, "created %s\n", filepath.Join(c.dir, c.flags.Arg(0)))
	return err
}

func renew(c *call) error {
	days := c.flags.Int("days", 60, "renew certificates that expire within this number of `days`")
	if err := c.parse(0); err != nil {
		return err
	}
	return c.edit(func(p *pki.PKI) error { return c.renew(p, *days) })
}

func (c *call) renew(p *pki.PKI, days int) error {
	created, err := p.Complete()
	for _, file := range created {
		plain.Fprintf(c.out, "created %s\n", file)
	}
	if err != nil {
		return err
	}
	renewed, ending, err := p.Renew(time.Duration(days) * 24 * time.Hour)
	for _, r := range renewed {
		plain.Fprintf(c.out, "renewed %s until %s\n", r.File, r.Until.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return err
	}
	if len(ending) > 0 {
		return fmt.Errorf("the authorities %q expire within %d days: create new identities with init", ending, days)
	}
	if len(renewed) == 0 {
		_, err = plain.Fprintf(c.out, "nothing expires within %d days\n", days)
	}
	return err
}

func inspect(c *call) error {
	days := c.flags.Int("days", 0, "fail if a certificate expires within this number of `days`")
	if err := c.parse(0); err != nil {
		return err
	}
	p, err := pki.Open(c.dir)
	if err != nil {
		return err
	}
	found, err := p.Inspect(c.out, time.Duration(*days)*24*time.Hour)
	if err != nil {
		return err
	}
	if found != (pki.Inspection{}) {
		return fmt.Errorf("%d certificates expire within %d days, %d files can be read by others, %d files do not fit", found.Ending, *days, found.Open, found.Wrong)
	}
	return nil
}
