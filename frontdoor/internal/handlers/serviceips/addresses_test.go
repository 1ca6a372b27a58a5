package serviceips

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/tree"
)

func newAssigner(t *testing.T, networks, ports string) *Assigner {
	t.Helper()
	n, err := ParseNetworks(strings.Split(networks, ","))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePorts(ports)
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Store: fake.New(t).Store(), Networks: n, NodePorts: p, Log: slog.New(slog.DiscardHandler)})
}

// serviceOf parses a Service's spec from YAML.
func serviceOf(t *testing.T, name, spec string) map[string]any {
	t.Helper()
	var read map[string]any
	if err := yaml.Unmarshal([]byte(spec), &read); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"metadata": map[string]any{"name": name, "namespace": "default", "uid": name},
		"spec": whole(read)}
}

// whole converts numbers to int64, as the API's decoders do.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = whole(item)
		}
	case []any:
		for i, item := range v {
			v[i] = whole(item)
		}
	case float64:
		return int64(v)
	}
	return v
}

// TestAssign assigns to new and changed Services. Each network is so small that it has
// one free address.
func TestAssign(t *testing.T) {
	const one, two = "10.0.0.0/30", "10.0.0.0/30,fd00::/126"
	for name, c := range map[string]struct {
		networks, spec, before string
		want                   string // clusterIPs, ipFamilies, ipFamilyPolicy, node ports and health check port
		err                    string // or this in the error
	}{
		"any":                  {networks: one, spec: `{type: ClusterIP}`, want: "[10.0.0.2] [IPv4] SingleStack [] 0"},
		"given":                {networks: one, spec: `{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}`, want: "[10.0.0.1] [IPv4] SingleStack [] 0"},
		"out of range":         {networks: one, spec: `{type: ClusterIP, clusterIP: 10.0.0.4, clusterIPs: [10.0.0.4]}`, err: "not in the valid range"},
		"broadcast":            {networks: one, spec: `{type: ClusterIP, clusterIPs: [10.0.0.3]}`, err: "not in the valid range"},
		"headless":             {networks: one, spec: `{type: ClusterIP, selector: {a: b}, clusterIPs: [None]}`, want: "[None] [IPv4] SingleStack [] 0"},
		"headless and free":    {networks: one, spec: `{type: ClusterIP, clusterIPs: [None]}`, want: "[None] [IPv4 IPv6] RequireDualStack [] 0"},
		"external":             {networks: one, spec: `{type: ExternalName}`, want: "[] []  [] 0"},
		"other family":         {networks: one, spec: `{type: ClusterIP, ipFamilies: [IPv6]}`, err: "not configured on this cluster"},
		"both required of one": {networks: one, spec: `{type: ClusterIP, ipFamilyPolicy: RequireDualStack}`, err: "not configured for dual-stack"},
		"both preferred of one": {networks: one, spec: `{type: ClusterIP, ipFamilyPolicy: PreferDualStack}`,
			want: "[10.0.0.2] [IPv4] PreferDualStack [] 0"},
		"both required": {networks: two, spec: `{type: ClusterIP, ipFamilyPolicy: RequireDualStack}`,
			want: "[10.0.0.2 fd00::2] [IPv4 IPv6] RequireDualStack [] 0"},
		"second first": {networks: two, spec: `{type: ClusterIP, ipFamilies: [IPv6], ipFamilyPolicy: PreferDualStack}`,
			want: "[fd00::2 10.0.0.2] [IPv6 IPv4] PreferDualStack [] 0"},
		"family of an address": {networks: two, spec: `{type: ClusterIP, clusterIPs: ["fd00::1"]}`, want: "[fd00::1] [IPv6] SingleStack [] 0"},
		"upgrade": {networks: two, before: `{type: ClusterIP}`,
			spec: `{type: ClusterIP, clusterIPs: [10.0.0.2], ipFamilies: [IPv4], ipFamilyPolicy: PreferDualStack}`,
			want: "[10.0.0.2 fd00::2] [IPv4 IPv6] PreferDualStack [] 0"},
		"downgrade": {networks: two, before: `{type: ClusterIP, ipFamilyPolicy: RequireDualStack}`,
			spec: `{type: ClusterIP, clusterIPs: [10.0.0.2, "fd00::2"], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: SingleStack}`,
			want: "[10.0.0.2] [IPv4] SingleStack [] 0"},
		"downgrade in silence": {networks: two, before: `{type: ClusterIP, ipFamilyPolicy: RequireDualStack}`,
			spec: `{type: ClusterIP, clusterIPs: [10.0.0.2], ipFamilies: [IPv4]}`, err: "must be 'SingleStack'"},
		"another address": {networks: one, before: `{type: ClusterIP}`, spec: `{type: ClusterIP, clusterIPs: [10.0.0.1]}`, err: "may not change once set"},
		"from external":   {networks: one, before: `{type: ExternalName}`, spec: `{type: ClusterIP}`, want: "[10.0.0.2] [IPv4] SingleStack [] 0"},

		"node port": {networks: one, spec: `{type: NodePort, ports: [{port: 80, protocol: TCP}]}`,
			want: "[10.0.0.2] [IPv4] SingleStack [30000] 0"},
		"one port of two protocols": {networks: one, spec: `{type: NodePort, ports: [{port: 53, protocol: TCP}, {port: 53, protocol: UDP}]}`,
			want: "[10.0.0.2] [IPv4] SingleStack [30000 30000] 0"},
		"given for two protocols": {networks: one,
			spec: `{type: NodePort, ports: [{port: 53, protocol: TCP, nodePort: 30000}, {port: 54, protocol: UDP, nodePort: 30000}]}`,
			want: "[10.0.0.2] [IPv4] SingleStack [30000 30000] 0"},
		"given twice": {networks: one, spec: `{type: NodePort, ports: [{port: 53, protocol: TCP, nodePort: 30000}, {port: 54, protocol: TCP, nodePort: 30000}]}`,
			err: "Duplicate value"},
		"out of ports":  {networks: one, spec: `{type: NodePort, ports: [{port: 1}, {port: 2}]}`, err: "range is full"},
		"wrong port":    {networks: one, spec: `{type: NodePort, ports: [{port: 1, nodePort: 80}]}`, err: "range of valid ports is 30000-30000"},
		"without ports": {networks: one, spec: `{type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 1}]}`, want: "[10.0.0.2] [IPv4] SingleStack [0] 0"},
		"health port": {networks: one, spec: `{type: LoadBalancer, externalTrafficPolicy: Local, allocateLoadBalancerNodePorts: false, ports: [{port: 1}]}`,
			want: "[10.0.0.2] [IPv4] SingleStack [0] 30000"},
		"needless health port": {networks: one, spec: `{type: NodePort, healthCheckNodePort: 30000}`, err: "may only be set when"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAssigner(t, c.networks, "30000-30000")
			var live map[string]any
			if c.before != "" {
				live = serviceOf(t, "s", c.before)
				store(t, a, live, nil)
			}
			next := serviceOf(t, "s", c.spec)
			m, err := a.Assign(t.Context(), Request{Service: next, Live: live})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				inStep(t, a, live)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m.Keep(t.Context())
			if got := summary(next); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			inStep(t, a, next)
		})
	}
}

// store assigns the addresses of a Service and stores it.
func store(t *testing.T, a *Assigner, service, live map[string]any) {
	t.Helper()
	m, err := a.Assign(t.Context(), Request{Service: service, Live: live})
	if err != nil {
		t.Fatal(err)
	}
	m.Keep(t.Context())
}

func summary(service map[string]any) string {
	spec := specOf(service)
	var ports []int64
	for _, p := range portsOf(spec) {
		ports = append(ports, tree.Number(p, "nodePort"))
	}
	return fmt.Sprint(tree.Texts(spec, "clusterIPs"), " ", tree.Texts(spec, "ipFamilies"), " ", tree.Text(spec, "ipFamilyPolicy"), " ", ports, " ", tree.Number(spec, "healthCheckNodePort"))
}

// inStep checks that exactly the addresses of one Service are claimed.
func inStep(t *testing.T, a *Assigner, service map[string]any) {
	t.Helper()
	claims, err := allClaims(t, a)
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	if service != nil {
		for _, key := range a.held(service) {
			held[key.Name] = true
			if claims[key].owner.Name != "s" {
				t.Errorf("%s is not claimed", key)
			}
		}
	}
	if len(claims) != len(held) {
		t.Errorf("%d claims for %d addresses", len(claims), len(held))
	}
}

// TestClaimedAgainWhileLeaving: one write of a Service gives up a port while another
// claims it again. The first must not free it.
func TestClaimedAgainWhileLeaving(t *testing.T) {
	a := newAssigner(t, "10.0.0.0/30", "30000-30001")
	with := func(port string) map[string]any {
		return serviceOf(t, "s", `{type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 1, nodePort: `+port+`}]}`)
	}
	first, second, third := with("30000"), with("30001"), with("30000")
	store(t, a, first, nil)
	leaving, err := a.Assign(t.Context(), Request{Service: second, Live: first})
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.Assign(t.Context(), Request{Service: third, Live: second})
	if err != nil {
		t.Fatal(err)
	}
	leaving.Keep(t.Context())
	again.Keep(t.Context())
	inStep(t, a, third)
}

// TestUndoLeavesWhatOthersRenewed undoes a write after another write of the same Service
// has renewed its claim.
func TestUndoLeavesWhatOthersRenewed(t *testing.T) {
	a := newAssigner(t, "10.0.0.0/30", "30000-30001")
	spec := `{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}`
	refused, stored := serviceOf(t, "s", spec), serviceOf(t, "s", spec)
	one, err := a.Assign(t.Context(), Request{Service: refused})
	if err != nil {
		t.Fatal(err)
	}
	other, err := a.Assign(t.Context(), Request{Service: stored})
	if err != nil {
		t.Fatal(err)
	}
	one.Undo(t.Context())
	other.Keep(t.Context())
	inStep(t, a, stored)
}

// TestParse parses the flags.
func TestParse(t *testing.T) {
	for _, wrong := range []string{"", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/24,10.1.0.0/24", "10.0.0.0/24,fd00::/64,fd01::/64"} {
		if n, err := ParseNetworks(strings.Split(wrong, ",")); err == nil {
			t.Errorf("%q is %v", wrong, n)
		}
	}
	for _, wrong := range []string{"", "30000", "0-10", "10-9", "1-65536", "a-b"} {
		if p, err := ParsePorts(wrong); err == nil {
			t.Errorf("%q is %v", wrong, p)
		}
	}
	n, err := ParseNetworks([]string{"10.0.0.0/12", "fd00::/64"})
	if err != nil || n[0].at(0) != "10.0.0.2" || n[1].at(n[1].size()-1) != "fd00::fffe" || !n[0].contains("10.15.255.254") {
		t.Errorf("%v %v %v", n, err, n[1].at(n[1].size()-1))
	}
}
