package controllers

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodes is the number of nodes.
const nodes = 3

// startNodes starts kwok with its own stages and metrics, creates nodes and waits until they are ready.
func (s *site) startNodes(t *testing.T) {
	t.Helper()
	var parts []string
	for _, name := range []string{"stage/node/fast/node-initialize", "stage/node/heartbeat-with-lease/node-heartbeat-with-lease",
		"stage/pod/fast/pod-ready", "stage/pod/fast/pod-complete", "stage/pod/fast/pod-delete",
		"metrics/resource/metrics-resource", "metrics/usage/usage-from-annotation"} {
		content, err := os.ReadFile(filepath.Join(module(t, "sigs.k8s.io/kwok"), "kustomize", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, string(content))
	}
	port := freePort(t)
	certificate, key := s.sign(t, certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
		x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + nodeName(0), Organization: []string{"system:nodes"}}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	s.run(t, "controllers/kwok", "--kubeconfig="+s.kubeconfig, "--config="+s.keep(t, "kwok.yaml", []byte(strings.Join(parts, "\n---\n"))),
		"--manage-all-nodes", "--cidr=10.64.0.0/16", "--node-lease-duration-seconds=40",
		"--node-ip=127.0.0.1", "--node-port="+port, "--server-address=127.0.0.1:"+port,
		"--tls-cert-file="+s.keep(t, "node.crt", certificate), "--tls-private-key-file="+s.keep(t, "node.key", key))
	// Of the size that kwok gives them, with storage, which specs of the scheduler need.
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods: resource.MustParse("1M"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti")}
	for n := range nodes {
		node := &corev1.Node{Status: corev1.NodeStatus{Capacity: size, Allocatable: size}, ObjectMeta: metav1.ObjectMeta{Name: nodeName(n), Labels: map[string]string{corev1.LabelHostname: nodeName(n), corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", n)},
			Annotations: map[string]string{"metrics.k8s.io/resource-metrics-path": "/metrics/nodes/" + nodeName(n) + "/metrics/resource"}}}
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
