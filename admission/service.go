// Package admission is the service that mutates and validates authorized requests that
// create, update, delete or connect. It is a chain of plugins, which flags turn on and
// off. Plugins read from the store and from mirrors, and call the configured webhooks and
// admission services. They write nothing but the status of ResourceQuotas and
// AdmissionServices, and Namespaces if NamespaceAutoProvision is on. Read requests do not pass admission. It serves section "Admission plugins" of the
// specification.
package admission

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/admission/internal/plugin"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/webhooks"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Service describes admission to the kit.
func Service() run.Service {
	return run.Service{
		Name:   "admission",
		About:  "mutates and validates write requests",
		Offers: []run.Dependency{contract.Admission},
		Needs:  []run.Dependency{contract.Store, contract.WatchHub, bus.Conn, contract.Authz},
		Flags:  flags,
		Start:  start,
	}
}

// servicesFile is the flag of the file of admission services.
const servicesFile = "admission-services-file"

func flags(fs *pflag.FlagSet) {
	on, off := names()
	fs.StringSlice("enable-admission-plugins", nil, "admission plugins to turn on in addition to those that are on by default; off by default: "+off)
	fs.StringSlice("disable-admission-plugins", nil, "admission plugins to turn off, of those that are on by default: "+on)
	fs.String("admission-control-config-file", "", "`file` with an AdmissionConfiguration, which configures admission plugins")
	fs.String(servicesFile, "", "`file` with AdmissionServices as YAML documents, in addition to those of the API; read again when it changes")
	webhooks.Flags(fs)
	clientFlags(fs)
	fs.Int64("default-not-ready-toleration-seconds", 300, "tolerationSeconds for nodes that are not ready, for pods that set none")
	fs.Int64("default-unreachable-toleration-seconds", 300, "tolerationSeconds for nodes that are unreachable, for pods that set none")
}

// names lists the plugins that are on by default, and those that are off, for the help.
func names() (on, off string) {
	lists := map[bool][]string{}
	for _, p := range plugin.Table(plugin.Environment{Vocabulary: vocabulary.Platform(), Release: release.V136}) {
		if !p.Always {
			lists[p.Default] = append(lists[p.Default], p.Name)
		}
	}
	return strings.Join(lists[true], ", "), strings.Join(lists[false], ", ")
}

func start(ctx context.Context, n *run.Node) error {
	var c choice
	c.enable, _ = n.Flags.GetStringSlice("enable-admission-plugins")
	c.disable, _ = n.Flags.GetStringSlice("disable-admission-plugins")
	// Wrong names and configurations are reported before any connection is made.
	known := plugin.Table(plugin.Environment{Vocabulary: n.Vocabulary, Release: n.Release, Gates: n.Gates})
	on, err := choose(known, c)
	if err != nil {
		return err
	}
	file, _ := n.Flags.GetString("admission-control-config-file")
	configured, err := configure(file, known, n.Vocabulary)
	if err != nil {
		return err
	}
	if err := checkConfigured(on, configured); err != nil {
		return err
	}
	e, err := environment(ctx, n, configured.Config, on)
	if err != nil {
		return err
	}
	all := &chain{}
	e.Admission = all
	plugins, err := choose(plugin.Table(e), c)
	if err != nil {
		return err
	}
	all.plugins, all.configured, all.settled = plugins, e.Configured, e.Settled
	for _, p := range plugins {
		if p.Deprecated {
			n.Log.Warn("a deprecated admission plugin is enabled; it will be removed", "flag", "enable-admission-plugins", "plugin", p.Name)
		}
	}
	contract.Admission.Offer(n, all)
	return nil
}

func unknown(flag, name string) error {
	return run.Usagef("%s: there is no plugin %q", flag, name)
}

func contradiction(name string) error {
	return run.Usagef("--enable-admission-plugins and --disable-admission-plugins both name %q", name)
}
