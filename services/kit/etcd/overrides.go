package etcd

import (
	"context"
	"crypto/tls"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Override is an etcd cluster that stores some resource types and nothing else. It has separate revisions and
// epochs.
type Override struct {
	// Name is that of the first type, as in events or leases.coordination.k8s.io: for logs,
	// metrics and health checks.
	Name  string
	Types []resource.GroupResource
	// Servers are its URLs, sorted.
	Servers []string
	// Client is the connection to it; nil from ParseOverrides.
	Client *clientv3.Client
}

// Overrides are the connections to the clusters of --etcd-servers-overrides.
var Overrides = &run.Contract[[]Override]{Name: "etcd overrides", Flags: overrideFlags, Dial: dialOverrides}

func overrideFlags(fs *pflag.FlagSet) {
	OverrideFlag(fs)
	fileFlags(fs)
}

// OverrideFlag declares the flag with the overrides.
func OverrideFlag(fs *pflag.FlagSet) {
	fs.StringSlice(flagOverrides, nil, "comma-separated `resources` with separate etcd servers, as in group/resource#https://host:2379;https://other:2379 and "+
		"/events#https://host:2379 for the core group; the store and the watch hub need the same")
}

// dialOverrides returns a client for each cluster, without waiting for the servers.
func dialOverrides(_ context.Context, n *run.Node) ([]Override, error) {
	overrides, err := ParseOverrides(n.Flags, n.Vocabulary)
	if err == nil && len(overrides) == 0 {
		_, err = Security(nil, n.Flags) // files without a server to use them for
	}
	if err != nil {
		return nil, err
	}
	for i, o := range overrides {
		if overrides[i].Client, err = connect(n, flagOverrides, "etcd-"+o.Name, o.Servers); err != nil {
			return nil, err
		}
	}
	return overrides, nil
}

// Security returns the TLS configuration for the servers, as the function Security does.
func (o Override) Security(fs *pflag.FlagSet) (*tls.Config, error) {
	return security(flagOverrides, o.Servers, fs)
}

// ParseOverrides returns the clusters of the flag, without clients. Overrides with the same
// servers are one cluster. The error is run.ErrUsage if the flag is invalid, if a resource
// cannot be kept apart, or if clusters share a server.
func ParseOverrides(fs *pflag.FlagSet, v vocabulary.Vocabulary) (found []Override, err error) {
	values, err := fs.GetStringSlice(flagOverrides)
	if err != nil {
		return nil, err
	}
	of := map[string]string{} // the cluster of each server
	if fs.Lookup(flagServers) != nil {
		main, _ := fs.GetStringSlice(flagServers)
		for _, server := range main {
			of[strings.TrimSuffix(server, "/")] = "--" + flagServers
		}
	}
	types := map[resource.GroupResource]bool{}
	for _, value := range values {
		gr, servers, err := parseOverride(value, v)
		switch {
		case err != nil:
			return nil, err
		case types[gr]:
			return nil, run.Usagef("--%s: %s is named twice", flagOverrides, gr)
		}
		types[gr] = true
		if i := slices.IndexFunc(found, func(o Override) bool { return slices.Equal(o.Servers, servers) }); i >= 0 {
			found[i].Types = append(found[i].Types, gr)
			continue
		}
		for _, server := range servers {
			if other, taken := of[server]; taken {
				return nil, run.Usagef("--%s: %s is a server of %s too: name the same servers for all resources of a cluster, none of them in --%s",
					flagOverrides, server, other, flagServers)
			}
			of[server] = gr.String()
		}
		found = append(found, Override{Name: gr.String(), Types: []resource.GroupResource{gr}, Servers: servers})
	}
	return found, nil
}

// ParseAnyOverrides does what ParseOverrides does, with the group names of either vocabulary, for
// tools that examine or save a suite from outside.
func ParseAnyOverrides(fs *pflag.FlagSet) ([]Override, error) {
	found, err := ParseOverrides(fs, vocabulary.K8s())
	if err == nil {
		return found, nil
	}
	if found, other := ParseOverrides(fs, vocabulary.Platform()); other == nil {
		return found, nil
	}
	return nil, err
}

// parseOverride parses one override, as in /events#https://host:2379.
func parseOverride(value string, v vocabulary.Vocabulary) (gr resource.GroupResource, servers []string, err error) {
	name, urls, ok := strings.Cut(value, "#")
	group, plural, separated := strings.Cut(name, "/")
	if !ok || !separated || plural == "" || urls == "" {
		return gr, nil, run.Usagef("--%s: %q is not of the form group/resource#https://host:2379;https://other:2379, with an empty group for the core group: /events#https://host:2379",
			flagOverrides, value)
	}
	gr = resource.GroupResource{Group: group, Resource: plural}
	if err := checkApart(gr, v); err != nil {
		return gr, nil, run.Usagef("--%s: %s: %v", flagOverrides, name, err)
	}
	servers = slices.DeleteFunc(strings.Split(urls, ";"), func(server string) bool { return server == "" })
	for i, server := range servers {
		servers[i] = strings.TrimSuffix(server, "/")
	}
	slices.Sort(servers)
	return gr, slices.Compact(servers), nil
}
