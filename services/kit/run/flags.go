package run

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/kit/run/logs"
	"github.com/portico-platform/portico/services/kit/run/manual"
	"github.com/portico-platform/portico/services/kit/run/readiness"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// settings holds the parsed flags that the kit itself uses.
type settings struct {
	flags      *pflag.FlagSet
	vocabulary vocabulary.Vocabulary
	release    release.Release
	gates      featuregate.Gates
	// deprecated are the warnings about the given feature gates.
	deprecated []string
	// log returns the logger of a service.
	log func(service string) *slog.Logger
}

// parse parses the arguments of an app. With --help it writes the manual page to help, with
// --check-health it checks another process; in both cases it returns no settings.
func parse(app App, args []string, help io.Writer) (*settings, error) {
	sections, err := flagSections(app)
	if err != nil {
		return nil, err
	}
	all := joinedFlags(app, sections)
	if err := all.Parse(args); err != nil {
		return nil, ParseError(all, err)
	}
	if asked, _ := all.GetBool("help"); asked {
		page := manual.Page{Name: app.Name, About: app.About, Sections: sections, Required: isRequired}
		for _, s := range app.Services {
			page.Services = append(page.Services, manual.Service{Name: s.Name, About: s.About})
		}
		page.Print(help)
		return nil, nil
	}
	if all.NArg() > 0 {
		return nil, Usagef("unexpected argument %q", all.Arg(0))
	}
	if address := all.Lookup("check-health").Value.String(); address != "" {
		return nil, readiness.Ask(address)
	}
	if app.Defaults != nil {
		if err := app.Defaults(all); err != nil {
			return nil, err
		}
	}
	return newSettings(all)
}

// flagsOf returns all flags of an app.
func flagsOf(app App) (*pflag.FlagSet, error) {
	sections, err := flagSections(app)
	if err != nil {
		return nil, err
	}
	return joinedFlags(app, sections), nil
}

func joinedFlags(app App, sections []manual.Section) *pflag.FlagSet {
	all := pflag.NewFlagSet(app.Name, pflag.ContinueOnError)
	all.SetOutput(io.Discard)
	for _, s := range sections {
		all.AddFlagSet(s.Flags)
	}
	return all
}

func newSettings(all *pflag.FlagSet) (*settings, error) {
	s := &settings{flags: all}
	var err error
	if s.vocabulary, err = vocabulary.Parse(s.text("vocabulary")); err != nil {
		return nil, Usagef("--vocabulary: %v", err)
	}
	if s.release, err = release.Parse(cmp.Or(s.text("emulated-version"), s.vocabulary.Release)); err != nil {
		return nil, Usagef("--emulated-version: %v", err)
	}
	given, _ := all.GetStringToString("feature-gates")
	if s.gates, s.deprecated, err = featuregate.Parse(s.release, given); err != nil {
		return nil, Usagef("--feature-gates: %v", err)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.text("log-level"))); err != nil {
		return nil, Usagef("--log-level: unknown level %q: use debug, info, warn or error", s.text("log-level"))
	}
	if s.log, err = logs.New(os.Stderr, s.text("log-format"), level); err != nil {
		return nil, Usagef("--log-format: %v", err)
	}
	all.VisitAll(func(f *pflag.Flag) {
		if err == nil && isRequired(f) && isEmpty(f.Value.String()) {
			err = Usagef("--%s is required", f.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// isEmpty reports whether a flag's value, of any type, is empty.
func isEmpty(value string) bool { return value == "" || value == "[]" }

// text returns the value of a flag of the kit, empty if the process does not have the flag.
func (s *settings) text(name string) string {
	f := s.flags.Lookup(name)
	if f == nil {
		return ""
	}
	return f.Value.String()
}

// flagSections collects the flags: the kit's, each service's own, and those of
// the contracts that no service of the app offers.
func flagSections(app App) ([]manual.Section, error) {
	var sections []manual.Section
	for _, s := range app.Services {
		if s.Flags != nil {
			own := pflag.NewFlagSet(s.Name, pflag.ContinueOnError)
			s.Flags(own)
			sections = append(sections, manual.Section{Title: s.Name, Flags: own})
		}
	}
	sections = append(sections, manual.Section{Title: "Other processes", Flags: elsewhere(app)}, manual.Section{Title: "Any process", Flags: anywhere()})
	return sections, shareFlags(sections)
}

// anywhere returns the flags of every process.
func anywhere() *pflag.FlagSet {
	fs := pflag.NewFlagSet("anywhere", pflag.ContinueOnError)
	fs.BoolP("help", "h", false, "print this and exit")
	fs.String(configFlag, "", "configuration `file` in YAML or JSON, with the names of flags as keys. Environment variables, as in PORTICO_SECURE_PORT, have precedence over it, and flags over both")
	fs.String("vocabulary", "platform", "vocabulary of API `names`: platform, or k8s for Kubernetes clients; cannot be changed for existing data")
	fs.String("emulated-version", "", "`release` of Kubernetes whose API is served, the same for all processes: 1.21 or 1.36. Empty: 1.21 with --vocabulary=platform, 1.36 with k8s")
	fs.StringToString("feature-gates", nil, "`features` to turn on or off, the same for all processes, as in ServerSideApply=false")
	gates := fs.Lookup("feature-gates")
	gates.Value = maybeEmpty{gates.Value}
	fs.String("log-level", "info", "minimum `level` to log: debug, info, warn or error")
	fs.String("log-format", "text", "`format` of log lines, on standard error: text or json")
	fs.Int64("memory-budget", 0, "maximum `bytes` of all caches of the process together; 0 for a sixteenth of the memory of the machine or cgroup, between 32 and 256 MiB. While less than a tenth of that memory is free, caches are limited to a quarter of it")
	fs.Bool("memory-release", true, "return unused memory to the system when the process is idle, which costs a garbage collection after a burst")
	fs.String("check-health", "", "check /readyz of the process with this --status-`address` and exit with status 0 if it is ready, else 1; for images without a shell")
	tracing.Flags(fs)
	fs.Duration(graceFlag, 0, "maximum `duration` of the start: if the process is not ready after it, /livez fails, so that the process is restarted; 0 for no limit")
	fs.String("status-address", "", "`address` that serves /livez, /readyz and /metrics over plain HTTP; empty: none")
	return fs
}

// maybeEmpty is the value of a flag that may be given without one, as Compose passes the variables that are not set.
type maybeEmpty struct{ pflag.Value }

func (v maybeEmpty) Set(text string) error {
	if text == "" {
		return nil
	}
	return v.Value.Set(text)
}

// elsewhere returns the flags for other processes: for contracts that the app needs and
// does not offer, and for the transport.
func elsewhere(app App) *pflag.FlagSet {
	fs := pflag.NewFlagSet("elsewhere", pflag.ContinueOnError)
	offers, dials, here := false, false, map[string]bool{}
	for _, s := range app.Services {
		for _, o := range s.Offers {
			here[o.name()] = true
			offers = offers || o.remote()
		}
	}
	for _, s := range app.Services {
		for _, need := range s.Needs {
			if !here[need.name()] {
				here[need.name()] = true
				dials = dials || need.remote()
				need.register(fs)
			}
		}
	}
	if offers || dials {
		peerFlags(fs, offers)
	}
	return fs
}

// shareFlags removes repeated declarations of a flag by several services. They must have
// the same type and default; the help text of the first is used.
func shareFlags(sections []manual.Section) error {
	first := map[string]*pflag.Flag{}
	var err error
	for i, s := range sections {
		own := pflag.NewFlagSet(s.Title, pflag.ContinueOnError)
		s.Flags.VisitAll(func(f *pflag.Flag) {
			known, ok := first[f.Name]
			switch {
			case !ok:
				first[f.Name] = f
				own.AddFlag(f)
			case known.DefValue != f.DefValue || known.Value.Type() != f.Value.Type():
				err = fmt.Errorf("--%s is declared twice, and differently by %s", f.Name, s.Title)
			}
		})
		sections[i].Flags = own
	}
	return err
}
