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
// doors connect to nodes, and admission reads its configuration; with those of the chart
// nothing of that is set.
func TestConnected(t *testing.T) {
	objects := render(t, "values/connected.yaml")
	connected, unconnected := flagsBy(objects), flagsBy(render(t, "values/default.yaml"))
	want := map[string][]string{
		"frontdoor": {"--trace-sampling=0.01", "--kubelet-client-certificate=/pki/kubelet.crt", "--kubelet-client-key=/pki/kubelet.key",
			"--kubelet-certificate-authority=/nodes/ca.crt", "--kubelet-preferred-address-types=InternalIP",
			"--connect-allow-cidrs=169.254.7.0/24", "--connect-deny-cidrs=10.20.0.0/16,fd00::/8"},
		"admission": {"--admission-control-config-file=/configuration/admission.yaml"},
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
