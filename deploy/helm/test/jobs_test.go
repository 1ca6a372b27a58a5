package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// node replaces the kubelet and the job controller: it runs the program of each Job with
// the arguments of its container, the token of its service account and the files of its
// Secrets, and writes the status.
type node struct {
	*site
	program, namespace string
	dir                string
	// instead overrides values of flags for this machine.
	instead map[string]string

	mu   sync.Mutex
	said map[string][]string // the output of the programs, by Job
}

// runJobs runs each Job of a namespace once, until the test ends.
func (s *site) runJobs(t *testing.T, namespace string, instead map[string]string) *node {
	t.Helper()
	n := &node{site: s, program: program(t, "portico"), namespace: namespace, dir: t.TempDir(), instead: instead, said: map[string][]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	watch, err := s.client.BatchV1().Jobs(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	group.Go(func() {
		for event := range watch.ResultChan() {
			job, ok := event.Object.(*batchv1.Job)
			if !ok || event.Type != "ADDED" {
				continue
			}
			if err := n.run(ctx, job); err != nil && ctx.Err() == nil {
				t.Errorf("running the Job %s: %v", job.Name, err)
			}
		}
	})
	context.AfterFunc(ctx, watch.Stop)
	return n
}

func (n *node) run(ctx context.Context, job *batchv1.Job) error {
	work := filepath.Join(n.dir, string(job.UID))
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	pod := job.Spec.Template.Spec
	replace := []string{"/work/", work + "/"}
	if err := n.mount(ctx, pod, work); err != nil {
		return err
	}
	replace = append(replace, "=/pki/", "="+work+"/pki/")
	for _, m := range pod.Containers[0].VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name == m.Name && v.PersistentVolumeClaim != nil {
				replace = append(replace, m.MountPath+"/", n.claim(v.PersistentVolumeClaim.ClaimName)+"/")
			}
		}
	}
	args := []string{}
	for _, arg := range pod.Containers[0].Args {
		flag, _, _ := strings.Cut(arg, "=")
		if other, ok := n.instead[flag]; ok && job.Name == "portico-test" {
			arg = flag + "=" + other
		}
		args = append(args, strings.NewReplacer(replace...).Replace(arg))
	}
	if value(pod.AutomountServiceAccountToken) {
		config, err := n.kubeconfigOf(ctx, pod.ServiceAccountName, work)
		if err != nil {
			return err
		}
		args = append(args, "--kubeconfig="+config)
	}
	out, failure := exec.CommandContext(ctx, n.program, args...).CombinedOutput()
	n.mu.Lock()
	n.said[job.Name] = append(n.said[job.Name], string(out))
	n.mu.Unlock()
	if failure != nil {
		failure = fmt.Errorf("%w: %s", failure, out)
	}
	return errors.Join(failure, n.report(ctx, job, failure))
}

// claim returns the folder that replaces the volume of a claim.
func (n *node) claim(name string) string { return filepath.Join(n.dir, "claims", name) }

// report writes the status of a Job that has ended.
func (n *node) report(ctx context.Context, job *batchv1.Job, failure error) error {
	now := metav1.Now()
	job.Status.StartTime = &now
	conditions := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} // the second needs the first
	if failure != nil {
		conditions = []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
		job.Status.Failed = 1
	} else {
		job.Status.Succeeded, job.Status.CompletionTime = 1, &now
	}
	for _, condition := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	_, err := n.client.BatchV1().Jobs(n.namespace).UpdateStatus(ctx, job, metav1.UpdateOptions{})
	return err
}

// mount writes the Secrets of a pod to the mount paths of its container, below a folder.
func (n *node) mount(ctx context.Context, pod corev1.PodSpec, work string) error {
	for _, v := range pod.Volumes {
		if v.Secret == nil {
			continue
		}
		secret, err := n.client.CoreV1().Secrets(n.namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(work, "pki"), 0o700); err != nil {
			return err
		}
		for _, item := range v.Secret.Items {
			if err := os.WriteFile(filepath.Join(work, "pki", item.Path), secret.Data[item.Key], 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// kubeconfigOf writes the configuration of a service account, with a token of its own.
func (n *node) kubeconfigOf(ctx context.Context, account, work string) (string, error) {
	token, err := n.client.CoreV1().ServiceAccounts(n.namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	config := api.NewConfig()
	config.Clusters["here"] = &api.Cluster{Server: n.config.Host, CertificateAuthorityData: n.config.CAData, CertificateAuthority: n.config.CAFile}
	config.AuthInfos["account"] = &api.AuthInfo{Token: token.Status.Token}
	config.Contexts["account"] = &api.Context{Cluster: "here", AuthInfo: "account"}
	config.CurrentContext = "account"
	path := filepath.Join(work, "kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// output returns what the runs of a Job have printed.
func (n *node) output(job string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.said[job]
}
