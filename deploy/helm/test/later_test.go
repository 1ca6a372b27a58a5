package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// laterChart asks for a newer Kubernetes, and has objects that only that one serves.
var laterChart = map[string]string{
	"Chart.yaml": "apiVersion: v2\nname: later\nversion: 1.0.0\nkubeVersion: '>= 1.30.0-0'\n",
	"templates/all.yaml": `{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy" }}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: later}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "object.metadata.name != 'forbidden'"}]
{{- end }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: later}
spec: {maxReplicas: {{ .Values.most }}, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: later}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: later}
data: {version: {{ .Capabilities.KubeVersion.Version | quote }}}
`,
	"values.yaml": "most: 3\n",
}

// TestLaterChart installs a chart that asks for Kubernetes 1.30 or newer, upgrades and
// uninstalls it. Release 1.21 refuses it.
func TestLaterChart(t *testing.T) {
	dir := t.TempDir()
	for name, content := range laterChart {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("1.21", func(t *testing.T) {
		s := start(t, "--emulated-version=1.21")
		if out, err := runHelm(t.Context(), "install", "later", dir, "--namespace=default", "--kubeconfig", s.kubeconfig); err == nil || !strings.Contains(out+err.Error(), "chart requires kubeVersion: >= 1.30.0-0") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("1.36", func(t *testing.T) {
		s := start(t, "--emulated-version=1.36")
		for _, args := range [][]string{{"install", "later", dir, "--wait"}, {"upgrade", "later", dir, "--set=most=5", "--wait"}} {
			if out, err := runHelm(t.Context(), append(args, "--namespace=default", "--kubeconfig", s.kubeconfig)...); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		scaler, err := s.client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), "later", metav1.GetOptions{})
		if err != nil || scaler.Spec.MaxReplicas != 5 {
			t.Errorf("%+v, %v", scaler.Spec, err)
		}
		config, err := s.client.CoreV1().ConfigMaps("default").Get(t.Context(), "later", metav1.GetOptions{})
		if err != nil || !strings.HasPrefix(config.Data["version"], "v1.36.") {
			t.Errorf("%v, %v", config.Data, err)
		}
		if _, err := s.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), "later", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if out, err := runHelm(t.Context(), "uninstall", "later", "--namespace=default", "--kubeconfig", s.kubeconfig); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}
