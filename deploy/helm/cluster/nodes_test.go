package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodes is the number of nodes, each in a zone of its own: as many as the servers of NATS, of which no two share a node.
const nodes = 5

// kwokModule returns the folder of kwok's module.
func kwokModule(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// startNodes starts kwok with its own types and stages, creates nodes and waits until they
// are ready.
func (s *site) startNodes(t *testing.T) {
	t.Helper()
	module := kwokModule(t)
	for _, plural := range []string{"clusterlogs", "clusterexecs", "clusterportforwards", "clusterattaches"} {
		file := filepath.Join(module, "kustomize/crd/bases", "kwok.x-k8s.io_"+plural+".yaml")
		if _, err := s.command(t.Context(), s.kubectlPath, "create", "-f", file); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.command(t.Context(), s.kubectlPath, "wait", "--for=condition=Established", "--timeout=1m", "crd", "--all"); err != nil {
		t.Fatal(err)
	}
	var stages []string
	for _, name := range []string{"node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease", "pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete"} {
		content, err := os.ReadFile(filepath.Join(module, "kustomize/stage", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		stages = append(stages, string(content))
	}
	config := filepath.Join(s.nodeFiles, "stages.yaml")
	if err := os.WriteFile(config, []byte(strings.Join(stages, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(s.nodeAddress)
	s.run(t, "cluster/kwok", "--kubeconfig="+s.kubeconfig, "--config="+config, "--manage-all-nodes", "--cidr=10.64.0.0/16",
		"--node-ip=127.0.0.1", "--node-port="+port, "--server-address="+s.nodeAddress, "--node-lease-duration-seconds=40",
		"--tls-cert-file="+s.nodeFile("crt"), "--tls-private-key-file="+s.nodeFile("key"), "--enable-crds=ClusterLogs,ClusterExec,ClusterPortForward,ClusterAttach")
	for n := range nodes {
		name := fmt.Sprintf("node-%d", n)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", n)}}}
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

// addVolumes creates the default class of storage and a volume for each member of etcd.
func (s *site) addVolumes(t *testing.T, number int) {
	t.Helper()
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait,
		ObjectMeta: metav1.ObjectMeta{Name: "local", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}}
	if _, err := s.client.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for n := range number {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("volume-%d", n)}, Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "local", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprintf("zone-%d", n%nodes)}}}}}}},
		}}
		if _, err := s.client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
