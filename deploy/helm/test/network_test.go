package test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	contracts "github.com/portico-platform/portico/services"
)

// edge is a connection that one component makes to another.
type edge struct {
	from, to string
	port     int
}

// architecture returns the edges of the suite: those of the table that services check
// their callers with, and those of docs/architecture.md to etcd, NATS and the front door.
func architecture(objects rendered) map[edge]bool {
	edges := map[edge]bool{}
	names := map[string]string{"Store": "store", "WatchHub": "watch-hub", "Authn": "authn", "Authz": "authz", "Admission": "admission"}
	for method, callers := range contracts.Callers() {
		contract, _, _ := strings.Cut(method, "/")
		if names[contract] == "" {
			continue // AdmissionBatch is offered by admission services only
		}
		for _, c := range callers {
			edges[edge{c.Service, names[contract], 7443}] = true
		}
	}
	for _, client := range []string{"csr-signer", "token-cleaner", "lifecycle", "test", "frontdoor"} {
		edges[edge{client, "frontdoor", 6443}] = true
	}
	for _, service := range []string{"store", "watch-hub"} {
		edges[edge{service, "etcd", 2379}] = true
	}
	for _, service := range []string{"watch-hub", "frontdoor", "authz", "admission"} {
		edges[edge{service, "nats", 4222}] = true
	}
	for _, service := range services {
		edges[edge{"frontdoor", service, 8080}] = true
	}
	edges[edge{"etcd", "etcd", 2380}], edges[edge{"nats", "nats", 6222}] = true, true
	bundled := map[string]bool{}
	for _, w := range workloads(objects) {
		bundled[w.component] = true
	}
	if bundled["backup"] {
		edges[edge{"backup", "etcd", 2379}] = true
	}
	maps.DeleteFunc(edges, func(e edge, _ bool) bool {
		return (e.to == "etcd" || e.to == "nats") && !bundled[e.to]
	})
	return edges
}

// peers returns the components of a rule; nil means clients outside of this suite.
func peers(t *testing.T, policy string, list []networkingv1.NetworkPolicyPeer) (names []string) {
	for _, p := range list {
		if p.PodSelector == nil {
			continue
		}
		l := p.PodSelector.MatchLabels
		if len(l) != 3 || l["app.kubernetes.io/instance"] != release || p.NamespaceSelector != nil || p.IPBlock != nil {
			t.Errorf("%s: a peer that is not exactly one component: %+v", policy, p)
		}
		names = append(names, component(l))
	}
	return names
}

// TestNetworkPoliciesAreTheArchitecture reads the edges back from both ends of each
// connection and compares them with those of the architecture.
func TestNetworkPoliciesAreTheArchitecture(t *testing.T) {
	forEach(t, func(t *testing.T, objects rendered) {
		policies := all[*networkingv1.NetworkPolicy](objects)
		if len(policies) == 0 && (strings.HasSuffix(t.Name(), "/minimal") || strings.HasSuffix(t.Name(), "/changed")) {
			return // they are disabled there
		}
		in, out, others := map[edge]bool{}, map[edge]bool{}, map[string]bool{}
		covered, resolves := map[string]bool{}, map[string]bool{}
		dns := 53
		if strings.HasSuffix(t.Name(), "/ha") {
			dns = 5353
		}
		for _, p := range policies {
			self := component(p.Spec.PodSelector.MatchLabels)
			covered[self] = true
			if len(p.Spec.PodSelector.MatchLabels) != 3 || len(p.Spec.PolicyTypes) != 2 {
				t.Errorf("%s: selects %v for %v", p.Name, p.Spec.PodSelector.MatchLabels, p.Spec.PolicyTypes)
			}
			for _, rule := range p.Spec.Ingress {
				names := peers(t, p.Name, rule.From)
				for _, port := range rule.Ports {
					for _, from := range names {
						in[edge{from, self, port.Port.IntValue()}] = true
					}
					if len(names) == 0 {
						others[fmt.Sprintf("others to %s %d", self, port.Port.IntValue())] = true
					}
				}
			}
			for _, rule := range p.Spec.Egress {
				if len(rule.Ports) == 0 {
					t.Errorf("%s: a rule for all ports", p.Name)
				}
				names := peers(t, p.Name, rule.To)
				for _, port := range rule.Ports {
					for _, to := range names {
						out[edge{self, to, port.Port.IntValue()}] = true
					}
					if number := port.Port.IntValue(); len(names) == 0 && number == dns {
						resolves[self] = true
					} else if len(names) == 0 {
						others[fmt.Sprintf("%s to others %d", self, port.Port.IntValue())] = true
					}
				}
			}
		}
		want := architecture(objects)
		if !maps.Equal(in, want) {
			t.Errorf("ingress: %s", difference(in, want))
		}
		if !maps.Equal(out, want) {
			t.Errorf("egress: %s", difference(out, want))
		}
		for _, w := range workloads(objects) {
			if !covered[w.component] {
				t.Errorf("%s: no policy", w.name)
			}
			if resolves[w.component] == (w.component == "restore") { // it needs nobody
				t.Errorf("%s: may ask DNS at port %d: %t", w.name, dns, resolves[w.component])
			}
		}
		checkOutside(t, others)
	})
}

// checkOutside compares the connections into and out of the suite with the allowed ones:
// clients, webhooks, metrics, external servers and the API of the cluster.
func checkOutside(t *testing.T, others map[string]bool) {
	may, must := []string{"others to frontdoor 6443"}, []string{"identities to others 443", "identities to others 6443"}
	if strings.HasSuffix(t.Name(), "/ha") {
		must = []string{"identities to others 8443"}
	}
	if strings.HasSuffix(t.Name(), "/existing") || strings.HasSuffix(t.Name(), "/cert-manager") {
		must = nil // there is no Job
	}
	for _, service := range []string{"frontdoor", "admission", "authn", "authz"} {
		must = append(must, service+" to others 443")
	}
	if strings.HasSuffix(t.Name(), "/ha") {
		must = append(must, "others to etcd 2381")
		for _, service := range services {
			must = append(must, "others to "+service+" 8080")
		}
	}
	for _, service := range []string{"frontdoor", "admission", "authn", "authz"} {
		may = append(may, service+" to others 8443", service+" to others 9443")
	}
	if strings.HasSuffix(t.Name(), "/external") {
		may = append(may, "store to others 2379", "watch-hub to others 2379", "watch-hub to others 4222",
			"frontdoor to others 4222", "authz to others 4222", "admission to others 4222")
	}
	if strings.HasSuffix(t.Name(), "/backup") {
		must = append(must, "store to others 2379", "watch-hub to others 2379", "backup to others 2379") // of the override
	}
	if strings.HasSuffix(t.Name(), "/connected") {
		must = append(must, "frontdoor to others 10250", "others to csr-signer 8081")
		for _, service := range services {
			must = append(must, service+" to others 4317")
		}
	}
	for _, other := range must {
		if !others[other] {
			t.Errorf("not allowed: %s", other)
		}
	}
	for other := range others {
		if !slices.Contains(may, other) && !slices.Contains(must, other) {
			t.Errorf("allowed: %s", other)
		}
	}
	if !others["others to frontdoor 6443"] {
		t.Errorf("not allowed: clients, among %v", others)
	}
}

func difference(got, want map[edge]bool) string {
	var lines []string
	for e := range got {
		if !want[e] {
			lines = append(lines, fmt.Sprintf("allowed beyond the architecture: %v", e))
		}
	}
	for e := range want {
		if !got[e] {
			lines = append(lines, fmt.Sprintf("not allowed: %v", e))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestAddressesLeadToServices follows the addresses in flags to a headless Service whose
// selector finds the pods of that component, and to a port that they have.
func TestAddressesLeadToServices(t *testing.T) {
	forEach(t, func(t *testing.T, objects rendered) {
		found := 0
		for _, w := range workloads(objects) {
			for _, arg := range w.pod.Containers[0].Args {
				flag, target, _ := strings.Cut(arg, "=dns:///")
				if target == "" {
					continue
				}
				found++
				name, _, _ := strings.Cut(target, ":")
				i := slices.IndexFunc(all[*corev1.Service](objects), func(s *corev1.Service) bool { return s.Name == name })
				if i < 0 {
					t.Errorf("%s: %s: no Service %s", w.name, flag, name)
					continue
				}
				s := all[*corev1.Service](objects)[i]
				if !s.Spec.PublishNotReadyAddresses {
					t.Errorf("%s: %s leads nowhere while no replica is ready", w.name, arg)
				}
				if want := strings.TrimSuffix(strings.TrimPrefix(flag, "--"), "-address"); component(s.Spec.Selector) != want || s.Spec.ClusterIP != corev1.ClusterIPNone || !strings.HasSuffix(target, fmt.Sprintf(":%d", s.Spec.Ports[0].Port)) {
					t.Errorf("%s: %s leads to %+v", w.name, arg, s.Spec)
				}
			}
		}
		if found != 11 {
			t.Errorf("%d addresses of services, want 11", found)
		}
		for _, s := range all[*corev1.Service](objects) {
			checkSelector(t, objects, s)
		}
	})
}

// TestFrontDoorsAskEveryService: --status-targets leads to the status ports of all replicas, also of
// those that are not ready.
func TestFrontDoorsAskEveryService(t *testing.T) {
	forEach(t, func(t *testing.T, objects rendered) {
		for _, w := range workloads(objects) {
			if w.component != "frontdoor" {
				continue
			}
			asked := map[string]bool{}
			for _, arg := range w.pod.Containers[0].Args {
				list, is := strings.CutPrefix(arg, "--status-targets=")
				for target := range strings.SplitSeq(list, ",") {
					name, address, _ := strings.Cut(target, "=")
					if is {
						asked[name] = leadsTo(objects, address, name)
					}
				}
			}
			for _, service := range services {
				if !asked[service] {
					t.Errorf("%s is not asked", service)
				}
			}
			if len(asked) != len(services) {
				t.Errorf("asked: %v", asked)
			}
		}
	})
}

// leadsTo reports whether an address is the status port of every pod of a service.
func leadsTo(objects rendered, address, service string) bool {
	return slices.ContainsFunc(all[*corev1.Service](objects), func(s *corev1.Service) bool {
		p := s.Spec.Ports[0]
		return s.Name+fmt.Sprintf(":%d", p.Port) == address && component(s.Spec.Selector) == service && p.TargetPort.StrVal == "status" &&
			s.Spec.ClusterIP == corev1.ClusterIPNone && s.Spec.PublishNotReadyAddresses
	})
}

func checkSelector(t *testing.T, objects rendered, s *corev1.Service) {
	for _, w := range workloads(objects) {
		if w.component != component(s.Spec.Selector) {
			continue
		}
		for _, p := range s.Spec.Ports {
			if !slices.ContainsFunc(w.pod.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.StrVal }) {
				t.Errorf("Service %s: the pods of %s have no port %q", s.Name, w.name, p.TargetPort.StrVal)
			}
		}
		return
	}
	t.Errorf("Service %s selects nothing: %v", s.Name, s.Spec.Selector)
}

// TestIdentitiesAreSeparate: no pod mounts the identity of another one or the key of an
// authority, except that members of etcd, and NATS servers, share theirs.
func TestIdentitiesAreSeparate(t *testing.T) {
	forEach(t, func(t *testing.T, objects rendered) {
		for _, w := range workloads(objects) {
			for _, v := range w.pod.Volumes {
				var secrets []string
				if v.Secret != nil && len(v.Secret.Items) == 0 {
					secrets = append(secrets, v.Secret.SecretName)
				}
				if v.Projected != nil {
					for _, s := range v.Projected.Sources {
						if s.Secret != nil && slices.ContainsFunc(s.Secret.Items, func(k corev1.KeyToPath) bool { return strings.HasSuffix(k.Key, ".key") }) {
							secrets = append(secrets, s.Secret.Name)
						}
					}
				}
				for _, secret := range secrets {
					checkOwn(t, w, secret)
				}
			}
		}
	})
}

func checkOwn(t *testing.T, w workload, secret string) {
	_, rest, ours := strings.Cut(secret, "-pki-")
	if !ours {
		_, rest, ours = strings.Cut(secret, "our-identities-")
	}
	allowed := rest == w.component || strings.HasPrefix(rest, w.component+"-") || strings.HasPrefix(rest, w.name+"-") ||
		rest == "service-account" && (w.component == "frontdoor" || w.component == "lifecycle" || w.component == "authn") ||
		rest == "users-ca" && w.component == "csr-signer"
	if ours && !allowed {
		t.Errorf("%s sees the keys of %s", w.name, secret)
	}
}
