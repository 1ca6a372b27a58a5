package test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// flagsBy returns the arguments of each service, by its component.
func flagsBy(objects rendered) map[string][]string {
	flags := map[string][]string{}
	for _, w := range workloads(objects) {
		flags[w.component] = w.pod.Containers[0].Args
	}
	return flags
}

// TestConnected: with the values of connected.yaml, every service sends its traces, front
// doors connect to nodes, csr-signer publishes what is revoked, and admission reads its
// configuration; with those of the chart nothing of that is set.
func TestConnected(t *testing.T) {
	objects := render(t, "values/connected.yaml")
	connected, unconnected := flagsBy(objects), flagsBy(render(t, "values/default.yaml"))
	want := map[string][]string{
		"frontdoor": {"--trace-sampling=0.01", "--kubelet-client-certificate=/pki/kubelet.crt", "--kubelet-client-key=/pki/kubelet.key",
			"--kubelet-certificate-authority=/nodes/ca.crt", "--kubelet-preferred-address-types=InternalIP",
			"--connect-allow-cidrs=169.254.7.0/24", "--connect-deny-cidrs=10.20.0.0/16,fd00::/8"},
		"admission":  {"--admission-control-config-file=/configuration/admission.yaml"},
		"csr-signer": {"--revocation-status-address=:8081", "--revocation-status-url=http://pki.example.com", "--revocation-status-validity=30m"},
	}
	for _, service := range services {
		for _, flag := range append(want[service], "--otlp-endpoint=https://collector.example.com:4317", "--otlp-ca-file=/tracing/ca.crt") {
			name, _, _ := strings.Cut(flag, "=")
			if !slices.Contains(connected[service], flag) {
				t.Errorf("%s: no %s", service, flag)
			}
			if slices.ContainsFunc(unconnected[service], func(other string) bool { return strings.HasPrefix(other, name+"=") }) {
				t.Errorf("%s: %s is set by default", service, name)
			}
		}
	}
	maps := all[*corev1.ConfigMap](objects)
	if len(maps) != 1 || maps[0].Name != "portico-admission" || !strings.Contains(maps[0].Data["admission.yaml"], "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n") ||
		!strings.Contains(maps[0].Data["admission.yaml"], "clusterDefaultNodeSelector: zone=a") {
		t.Errorf("the configuration of admission: %+v", maps)
	}
	checksum := func(objects rendered) string {
		for _, d := range all[*appsv1.Deployment](objects) {
			if component(d.Labels) == "admission" {
				return d.Spec.Template.Annotations["checksum/configuration"]
			}
		}
		return ""
	}
	out, err := runHelm(t.Context(), "template", release, chart, "--namespace", namespace, "--set-json", `admissionConfiguration.plugins=[{"name":"PodNodeSelector","configuration":{}}]`)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := decode(out)
	if err != nil {
		t.Fatal(err)
	}
	if before, after := checksum(objects), checksum(changed); before == "" || after == "" || before == after {
		t.Errorf("a change of the configuration changes no pod: %q, %q", before, after)
	}
}

// TestRevocationStatus: a Service leads to the listener of csr-signer only if it is enabled, and
// values that csr-signer would refuse are refused.
func TestRevocationStatus(t *testing.T) {
	services := func(objects rendered) (found []*corev1.Service) {
		for _, s := range all[*corev1.Service](objects) {
			if s.Name == release+"-revocations" {
				found = append(found, s)
			}
		}
		return found
	}
	if found := services(render(t, "values/default.yaml")); len(found) != 0 {
		t.Errorf("by default: %+v", found)
	}
	objects := render(t, "values/connected.yaml")
	found := services(objects)
	if len(found) != 1 || found[0].Spec.Type != corev1.ServiceTypeLoadBalancer || found[0].Spec.Ports[0].Port != 8080 || component(found[0].Spec.Selector) != "csr-signer" {
		t.Fatalf("%+v", found)
	}
	for _, w := range workloads(objects) {
		if w.component == "csr-signer" && !slices.ContainsFunc(w.pod.Containers[0].Ports, func(p corev1.ContainerPort) bool {
			return p.Name == found[0].Spec.Ports[0].TargetPort.StrVal && p.ContainerPort == 8081
		}) {
			t.Errorf("csr-signer has the ports %+v", w.pod.Containers[0].Ports)
		}
	}
	for _, bad := range []string{"url=ftp://pki.example.com", "url=http://user@pki.example.com", "url=http://pki.example.com/?a=b", "validity=soon", "service.port=0", "service.type=Other", "clients=any", "host=:1"} {
		if out, err := runHelm(t.Context(), "template", release, chart, "--set", "revocationStatus.enabled=true", "--set", "revocationStatus."+bad); err == nil {
			t.Errorf("%s is accepted: %.200s", bad, out)
		}
	}
}
