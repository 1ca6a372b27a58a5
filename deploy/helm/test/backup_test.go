package test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claims returns the claims of a pod by the mount path, and which are read-only.
func claims(pod corev1.PodSpec) map[string]string {
	found := map[string]string{}
	for _, v := range pod.Volumes {
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.Name == v.Name && v.PersistentVolumeClaim != nil {
				found[m.MountPath] = v.PersistentVolumeClaim.ClaimName
				if m.ReadOnly {
					found[m.MountPath] += " read-only"
				}
			}
		}
	}
	return found
}

// TestBackupPods: the pod of a backup has its own identity and the volume of the backups. Each Job of a restoration has the
// volume of one member, and all have the same time and cluster.
func TestBackupPods(t *testing.T) {
	objects := render(t, "values/backup.yaml")
	found := map[string]batchv1.JobSpec{}
	for _, c := range all[*batchv1.CronJob](objects) {
		found[c.Name] = c.Spec.JobTemplate.Spec
		if c.Name == "portico-backup" && (c.Spec.Schedule != "*/30 * * * *" || c.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent) {
			t.Errorf("%+v", c.Spec)
		}
	}
	weight, shared := 0, map[string]bool{}
	for _, j := range all[*batchv1.Job](objects) {
		found[j.Name] = j.Spec
		if component(j.Labels) != "restore" {
			continue
		}
		next, err := strconv.Atoi(j.Annotations["helm.sh/hook-weight"])
		if err != nil || next <= weight || j.Annotations["helm.sh/hook"] != "pre-upgrade" {
			t.Errorf("%s: %v after the weight %d", j.Name, j.Annotations, weight)
		}
		weight = next
		for _, arg := range j.Spec.Template.Spec.Containers[0].Args {
			if !strings.HasPrefix(arg, "--member=") {
				shared[arg] = true
			}
		}
	}
	if len(shared) != 6 || !slices.ContainsFunc(slices.Collect(maps.Keys(shared)), func(arg string) bool {
		return arg == "--initial-cluster=portico-etcd-0=https://portico-etcd-0.portico-etcd:2380,portico-etcd-1=https://portico-etcd-1.portico-etcd:2380,portico-etcd-2=https://portico-etcd-2.portico-etcd:2380"
	}) {
		t.Errorf("the Jobs have the arguments %v", slices.Sorted(maps.Keys(shared)))
	}
	for name, want := range map[string]map[string]string{
		"portico-backup":    {"/backups": "portico-backups"},
		"portico-restore-0": {"/backups": "portico-backups read-only", "/data": "data-portico-etcd-0"},
		"portico-restore-2": {"/backups": "portico-backups read-only", "/data": "data-portico-etcd-2"},
	} {
		pod := found[name].Template.Spec
		if len(pod.Containers) != 1 {
			t.Fatalf("there is no %s", name)
		}
		if got := claims(pod); !maps.Equal(got, want) {
			t.Errorf("%s: mounts %v, want %v", name, got, want)
		}
		var secrets []string
		for _, v := range pod.Volumes {
			if v.Secret != nil {
				secrets = append(secrets, v.Secret.SecretName)
			}
		}
		if want := map[bool]string{true: "portico-pki-backup"}[name == "portico-backup"]; strings.Join(secrets, " ") != want {
			t.Errorf("%s: has the Secrets %q, want %q", name, secrets, want)
		}
	}
	if args := strings.Join(found["portico-backup"].Template.Spec.Containers[0].Args, " "); !strings.Contains(args, "--keep=48 --etcd-servers=https://portico-etcd-0.portico-etcd:2379,") ||
		!strings.Contains(args, "--etcd-servers-overrides=/events#https://events-1.example.com:2379") {
		t.Errorf("the backup has the arguments %s", args)
	}
}

// TestExternalBackup: the backup of an external etcd shows what the store shows it, goes into an existing claim, and is in the network
// policies.
func TestExternalBackup(t *testing.T) {
	out, err := runHelm(t.Context(), "template", release, chart, "--namespace", namespace, "--values", "values/external.yaml", "--set", "backup.enabled=true,backup.claim=ours")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(out)
	if err != nil {
		t.Fatal(err)
	}
	if made := all[*corev1.PersistentVolumeClaim](objects); len(made) > 0 {
		t.Errorf("a claim is made: %s", made[0].Name)
	}
	flags := map[string][]string{}
	for _, w := range workloads(objects) {
		for _, arg := range w.pod.Containers[0].Args {
			if strings.HasPrefix(arg, "--etcd") {
				flags[w.component] = append(flags[w.component], arg)
			}
		}
		if w.component == "backup" && claims(w.pod)["/backups"] != "ours" {
			t.Errorf("it mounts %v", claims(w.pod))
		}
		if w.component == "backup" {
			files := mounted(t, w, "portico-pki", false)
			if !slices.Contains(files, "/etcd/tls.crt") || slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, "/pki") }) {
				t.Errorf("it sees %v", files)
			}
		}
	}
	if len(flags["store"]) != 6 || !slices.Equal(flags["store"], flags["backup"]) {
		t.Errorf("the backup has the flags %q, and the store %q", flags["backup"], flags["store"])
	}
}

// TestRestore restores a release as docs/operations/backup.md describes it: refused while etcd runs, stopped by an upgrade, and
// restored and started by the next one. The Jobs run, on folders in the place of volumes; etcd does not.
func TestRestore(t *testing.T) {
	s := start(t)
	s.makeNamespace(t, namespace)
	n := s.runJobs(t, namespace, nil)
	upgrade := func(set string) error {
		t.Helper()
		_, err := runHelm(t.Context(), "upgrade", release, chart, "--install", "--reset-then-reuse-values", "--set", set, "--timeout=2m", "--namespace", namespace, "--kubeconfig", s.kubeconfig)
		return err
	}
	etcd := func() appsv1.StatefulSetSpec {
		t.Helper()
		set, err := s.client.AppsV1().StatefulSets(namespace).Get(t.Context(), release+"-etcd", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return set.Spec
	}
	const name = "2026-01-31T02-23-00Z"
	if err := upgrade("backup.enabled=true"); err != nil {
		t.Fatal(err)
	}
	for _, claim := range []string{"portico-backups", "data-portico-etcd-0", "data-portico-etcd-1", "data-portico-etcd-2"} {
		if err := os.MkdirAll(n.claim(claim), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(n.claim("data-portico-etcd-1"), "etcd", "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program(t, "portico"), "backup", "create", filepath.Join(n.claim("portico-backups"), name), "--data-dir="+s.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	refused := func(when string) {
		t.Helper()
		if err := upgrade("restore.backup=" + name); err == nil || !strings.Contains(err.Error(), "etcd is not stopped") {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("while etcd runs")
	if err := upgrade("etcd.stopped=true"); err != nil || value(etcd().Replicas) != 0 {
		t.Fatalf("%v, %d members", err, value(etcd().Replicas))
	}
	if err := upgrade("etcd.stopped=false,restore.backup=" + name); err != nil || value(etcd().Replicas) != 3 {
		t.Fatalf("%v, %d members", err, value(etcd().Replicas))
	}
	for _, member := range []string{"0", "1", "2"} {
		if _, err := os.Stat(filepath.Join(n.claim("data-portico-etcd-"+member), "etcd", "member", "snap", "db")); err != nil {
			t.Error(err)
		}
		if said := n.output("portico-restore-" + member); len(said) != 1 || !strings.Contains(said[0], "restored the main etcd") {
			t.Errorf("the Job of %s has said %q", member, said)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(n.claim("*"), "etcd-before-*", "member")); err != nil || len(kept) != 1 {
		t.Errorf("the old data are in %v, %v", kept, err)
	}
	refused("when it was restored")
	if err := upgrade("restore.backup="); err != nil {
		t.Error(err)
	}

	// A lost member is replaced.
	joins := func() bool {
		return slices.Contains(etcd().Template.Spec.Containers[0].Args, "--initial-cluster-state=existing")
	}
	strategy := func(patch string, want appsv1.StatefulSetUpdateStrategyType) {
		t.Helper()
		if _, err := s.client.AppsV1().StatefulSets(namespace).Patch(t.Context(), release+"-etcd", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := etcd().UpdateStrategy.Type; got != want {
			t.Errorf("the strategy is %s, want %s", got, want)
		}
	}
	before := etcd()
	strategy(`{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`, appsv1.OnDeleteStatefulSetStrategyType)
	if err := upgrade("etcd.joinExisting=true"); err != nil || !joins() || etcd().UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		t.Errorf("%v, %v", err, etcd().UpdateStrategy)
	}
	if err := upgrade("etcd.joinExisting=false"); err != nil || !reflect.DeepEqual(etcd().Template, before.Template) { // so that no other pod is replaced
		t.Errorf("%v, %v", err, etcd().Template)
	}
	strategy(`{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`, appsv1.RollingUpdateStatefulSetStrategyType)
}
