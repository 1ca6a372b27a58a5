package controllers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodes is the number of nodes.
const nodes = 3

// startNodes starts kwok with its own stages, creates nodes and waits until they are ready.
func (s *site) startNodes(t *testing.T) {
	t.Helper()
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok").Output()
	if err != nil {
		t.Fatal(err)
	}
	var stages []string
	for _, name := range []string{"node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease", "pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete"} {
		content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "kustomize/stage", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		stages = append(stages, string(content))
	}
	config := filepath.Join(s.dir, "stages.yaml")
	if err := os.WriteFile(config, []byte(strings.Join(stages, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(t, "controllers/kwok", "--kubeconfig="+s.kubeconfig, "--config="+config, "--manage-all-nodes", "--cidr=10.64.0.0/16", "--node-lease-duration-seconds=40")
	for n := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(n), Labels: map[string]string{corev1.LabelHostname: nodeName(n)}}}
		if _, err := s.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "nodes are ready", func() error {
		list, err := s.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range list.Items {
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue || len(node.Spec.Taints) > 0 {
					return fmt.Errorf("%s: %+v, taints %v", node.Name, c, node.Spec.Taints)
				}
			}
			if len(node.Status.Conditions) == 0 {
				return errors.New(node.Name + " has no status")
			}
		}
		return nil
	})
}

func nodeName(n int) string { return fmt.Sprintf("node-%d", n) }
