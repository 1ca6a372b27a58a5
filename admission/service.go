// Package admission is the service that changes and refuses requests that create,
// change, delete or connect, after they have been authorized. It is a chain of
// plugins, of which flags choose the ones that are on. It reads what it needs from
// the store and mirrors of it, and asks webhooks that are configured; it writes nothing
// but what quotas have in use, and it never sees a request that only reads. It serves section "Admission plugins" of the specification.
package admission

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/admission/internal/plugin"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
)

// Service describes admission to the kit.
func Service() run.Service {
	return run.Service{
		Name:   "admission",
		About:  "changes and refuses requests that write",
		Offers: []run.Dependency{contract.Admission},
		Needs:  []run.Dependency{contract.Store, contract.WatchHub, bus.Conn, contract.Authz},
		Flags:  flags,
		Start:  start,
	}
}

func flags(fs *pflag.FlagSet) {
	fs.StringSlice("enable-admission-plugins", nil, "admission plugins to turn on beside those that are on by default")
	fs.StringSlice("disable-admission-plugins", nil, "admission plugins to turn off although they are on by default")
	fs.String("admission-control-config-file", "", "file that configures admission plugins; refused, as none reads a configuration yet")
	fs.Int64("default-not-ready-toleration-seconds", 300, "how long pods stay on a node that is not ready, unless they say otherwise")
	fs.Int64("default-unreachable-toleration-seconds", 300, "how long pods stay on a node that cannot be reached, unless they say otherwise")
}

func start(ctx context.Context, n *run.Node) error {
	var c choice
	c.enable, _ = n.Flags.GetStringSlice("enable-admission-plugins")
	c.disable, _ = n.Flags.GetStringSlice("disable-admission-plugins")
	// Wrong names are told before anything is started.
	if _, err := choose(plugin.Table(plugin.Environment{Vocabulary: n.Vocabulary}), c); err != nil {
		return err
	}
	e, err := environment(ctx, n)
	if err != nil {
		return err
	}
	plugins, err := choose(plugin.Table(e), c)
	if err != nil {
		return err
	}
	if file, _ := n.Flags.GetString("admission-control-config-file"); file != "" {
		return run.Usagef("--admission-control-config-file: no plugin of this release reads a configuration, so that %s would have no effect", file)
	}
	for _, p := range plugins {
		if p.Deprecated {
			n.Log.Warn("an admission plugin is on that is deprecated and will be removed", "flag", "enable-admission-plugins", "plugin", p.Name)
		}
	}
	contract.Admission.Offer(n, &chain{plugins: plugins})
	return nil
}

func unknown(flag, name string) error {
	return run.Usagef("%s: there is no plugin %q", flag, name)
}

func contradiction(name string) error {
	return run.Usagef("--enable-admission-plugins and --disable-admission-plugins both name %q", name)
}
