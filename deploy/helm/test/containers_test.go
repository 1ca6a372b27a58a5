package test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// workload is a pod template with the name of its controller.
type workload struct {
	name, component string
	pod             corev1.PodSpec
	serves          bool // it runs until it is stopped
}

func workloads(objects rendered) (found []workload) {
	add := func(name string, pod corev1.PodTemplateSpec, serves bool) {
		found = append(found, workload{name, component(pod.Labels), pod.Spec, serves})
	}
	for _, d := range all[*appsv1.Deployment](objects) {
		add(d.Name, d.Spec.Template, true)
	}
	for _, s := range all[*appsv1.StatefulSet](objects) {
		add(s.Name, s.Spec.Template, true)
	}
	for _, j := range all[*batchv1.Job](objects) {
		add(j.Name, j.Spec.Template, false)
	}
	for _, c := range all[*batchv1.CronJob](objects) {
		add(c.Name, c.Spec.JobTemplate.Spec.Template, false)
	}
	return found
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// TestPodsAreConfined checks the security contexts of all pods and containers.
func TestPodsAreConfined(t *testing.T) {
	forEach(t, func(t *testing.T, objects rendered) {
		for _, w := range workloads(objects) {
			p := w.pod
			if s := p.SecurityContext; s == nil || !value(s.RunAsNonRoot) || value(s.RunAsUser) == 0 || value(s.FSGroup) == 0 || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: pod security %+v", w.name, s)
			}
			if token := value(p.AutomountServiceAccountToken); p.AutomountServiceAccountToken == nil || token != (w.component == "identities") {
				t.Errorf("%s: a token of this cluster: %v", w.name, token)
			}
			if p.HostNetwork || p.HostPID || p.HostIPC || len(p.InitContainers) > 0 || len(p.Containers) != 1 {
				t.Errorf("%s: %+v", w.name, p)
			}
			for _, v := range p.Volumes {
				if v.HostPath != nil {
					t.Errorf("%s: a path of the host", w.name)
				}
			}
			for _, c := range p.Containers {
				checkContainer(t, w, c)
			}
		}
	})
}

var image = regexp.MustCompile(`^[a-z0-9][a-z0-9./-]*:[\w.-]+$`)

func checkContainer(t *testing.T, w workload, c corev1.Container) {
	s := c.SecurityContext
	if s == nil || !value(s.RunAsNonRoot) || !value(s.ReadOnlyRootFilesystem) || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || value(s.Privileged) ||
		s.Capabilities == nil || len(s.Capabilities.Add) > 0 || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || s.SeccompProfile == nil {
		t.Errorf("%s: container security %+v", w.name, s)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("%s: resources %+v", w.name, c.Resources)
	}
	if !image.MatchString(c.Image) {
		t.Errorf("%s: image %q", w.name, c.Image)
	}
	if !w.serves {
		return
	}
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe} {
		if probe == nil {
			t.Errorf("%s: no %s probe", w.name, name)
			continue
		}
		path, port := "", ""
		if probe.HTTPGet != nil {
			path, port = probe.HTTPGet.Path, probe.HTTPGet.Port.StrVal
		} else {
			port = probe.TCPSocket.Port.StrVal
		}
		if want := map[string]string{"startup": "/livez", "readiness": "/readyz", "liveness": "/livez"}[name]; path != want && w.component != "nats" && (name != "readiness" || w.component != "frontdoor") {
			t.Errorf("%s: the %s probe asks %q", w.name, name, path)
		}
		if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port }) {
			t.Errorf("%s: the %s probe asks the port %q", w.name, name, port)
		}
	}
}

// manual returns the manual page of a program, which it caches.
var manual = func() func(string, ...string) (string, error) {
	var mu sync.Mutex
	pages := map[string]string{}
	return func(program string, args ...string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		key := program + strings.Join(args, " ")
		if pages[key] == "" {
			out, err := exec.Command(program, slices.Concat(args, []string{"--help"})...).CombinedOutput()
			if err != nil {
				return "", err
			}
			pages[key] = string(out)
		}
		return pages[key], nil
	}
}()

var flagLine = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z0-9-]+)`)

// flagsOf returns the flags of a program.
func flagsOf(t *testing.T, name string, args ...string) (flags []string) {
	t.Helper()
	page, err := manual(program(t, name), args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range flagLine.FindAllStringSubmatch(page, -1) {
		flags = append(flags, match[1])
	}
	if len(flags) < 3 {
		t.Fatalf("%s has the flags %q: %s", name, flags, page)
	}
	return flags
}

// suiteFlags returns the flags of a pod's program.
func suiteFlags(t *testing.T, w workload) []string {
	switch {
	case slices.Contains(services, w.component):
		return flagsOf(t, w.component)
	case w.component == "restore":
		return flagsOf(t, "portico", "restore")
	case w.component == "identities" || w.component == "test" || w.component == "backup":
		return flagsOf(t, "portico", w.pod.Containers[0].Args[:2]...)
	}
	return nil
}

// TestFlagsExist compares each flag of the chart with the manual page of its program.
func TestFlagsExist(t *testing.T) {
	forEach(t, func(t *testing.T, objects rendered) {
		checked := 0
		for _, w := range workloads(objects) {
			known := suiteFlags(t, w)
			if known == nil {
				continue
			}
			given := map[string]bool{}
			for _, arg := range w.pod.Containers[0].Args {
				name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
				if !strings.HasPrefix(arg, "--") {
					continue // a command
				}
				if checked++; !slices.Contains(known, name) {
					t.Errorf("%s: --%s is no flag of it", w.name, name)
				}
				given[name] = true
			}
			page, _ := manual(program(t, cmp.Or(map[bool]string{true: w.component}[slices.Contains(services, w.component)], "portico")))
			for _, name := range known {
				own := name == "rpc-address" || name == "bind-address" || name == "revocation-status-address"
				if strings.HasSuffix(name, "-address") && !own && !given[name] && slices.Contains(services, w.component) && strings.Contains(page, "--"+name) {
					t.Errorf("%s: is not told --%s", w.name, name)
				}
			}
		}
		if checked < 100 {
			t.Errorf("only %d flags", checked)
		}
	})
}

// folders are the files that portico pki makes, by the folder, for the members of the
// chart's largest values.
var folders = sync.OnceValues(func() (map[string][]string, error) {
	dir, err := bin()
	if err != nil {
		return nil, err
	}
	parent, err := os.MkdirTemp("", "pki-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(parent)
	out := filepath.Join(parent, "pki")
	etcd, nats := []string{}, []string{}
	for _, n := range []string{"0", "1", "2", "3", "4"} {
		for _, name := range []string{"portico", "api"} {
			etcd, nats = append(etcd, name+"-etcd-"+n+"."+name+"-etcd"), append(nats, name+"-nats-"+n+"."+name+"-nats")
		}
	}
	if err := exec.Command(filepath.Join(dir, "portico"), "pki", "init", "--dir="+out, "--etcd-members="+strings.Join(etcd, ","), "--nats-servers="+strings.Join(nats, ",")).Run(); err != nil {
		return nil, err
	}
	made := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(out, "*", "*"))
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		made[folder] = append(made[folder], filepath.Base(file))
	}
	return made, err
})

// mounted returns the files that a container sees, by their paths. Secrets of portico
// pki hold its folders, those of cert-manager three files, others what the chart says.
func mounted(t *testing.T, w workload, prefix string, certManager bool) (files []string) {
	made, err := folders()
	if err != nil {
		t.Fatal(err)
	}
	keys := func(secret string) []string {
		if folder, ours := strings.CutPrefix(secret, prefix+"-"); ours && !certManager {
			if len(made[folder]) == 0 {
				t.Errorf("%s: portico pki makes no folder %q", w.name, folder)
			}
			return made[folder]
		}
		return []string{"ca.crt", "tls.crt", "tls.key", "nats.seed"}
	}
	for _, m := range w.pod.Containers[0].VolumeMounts {
		for _, v := range w.pod.Volumes {
			if v.Name != m.Name {
				continue
			}
			add := func(secret string, items []corev1.KeyToPath) {
				for _, item := range items {
					if !slices.Contains(keys(secret), item.Key) {
						t.Errorf("%s: the Secret %s has no %s", w.name, secret, item.Key)
					}
					files = append(files, filepath.Join(m.MountPath, item.Path))
				}
				if len(items) == 0 {
					for _, key := range keys(secret) {
						files = append(files, filepath.Join(m.MountPath, key))
					}
				}
			}
			if v.Secret != nil {
				add(v.Secret.SecretName, v.Secret.Items)
			}
			if v.ConfigMap != nil {
				files = append(files, filepath.Join(m.MountPath, "admission.yaml")) // TestConnected reads it
			}
			if v.Projected != nil {
				for _, s := range v.Projected.Sources {
					if s.Secret != nil {
						add(s.Secret.Name, s.Secret.Items)
					} else {
						for _, item := range s.ConfigMap.Items {
							files = append(files, filepath.Join(m.MountPath, item.Path))
						}
					}
				}
			}
		}
	}
	return files
}

var pathInFlag = regexp.MustCompile(`/(?:pki|etcd|nats|tracing|nodes|configuration)/[^,]+`)

// TestFilesAreMounted follows each file that a flag names to a key of a Secret that
// portico pki, cert-manager or the operator makes.
func TestFilesAreMounted(t *testing.T) {
	forEach(t, func(t *testing.T, objects rendered) {
		prefix := "portico-pki"
		if strings.HasSuffix(t.Name(), "/existing") {
			prefix = "our-identities"
		}
		checked := 0
		for _, w := range workloads(objects) {
			files := mounted(t, w, prefix, strings.HasSuffix(t.Name(), "/cert-manager"))
			for _, arg := range w.pod.Containers[0].Args {
				_, value, _ := strings.Cut(arg, "=")
				path := pathInFlag.FindString(value)
				if !strings.HasPrefix(value, "/") || path == "" {
					continue
				}
				for _, member := range []string{"0", "1", "2"} {
					own := strings.ReplaceAll(path, "$(POD_NAME)", w.name+"-"+member)
					checked++
					if !slices.Contains(files, own) && !(own != path && member != "0" && strings.HasSuffix(t.Name(), "/minimal")) {
						t.Errorf("%s: %s is not mounted", w.name, own)
					}
				}
			}
			if slices.Contains(services, w.component) && !slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, "/pki/") }) {
				t.Errorf("%s: sees no identity", w.name)
			}
		}
		if checked < 100 {
			t.Errorf("only %d files", checked)
		}
	})
}

// TestEtcdServesGRPCAlone: etcd has another port for HTTP, which is reached from within the pod and
// with a certificate only, because its gateway acts with that of etcd.
func TestEtcdServesGRPCAlone(t *testing.T) {
	var checked atomic.Int64
	t.Run("values", func(t *testing.T) { // returns after all of them
		forEach(t, func(t *testing.T, objects rendered) {
			for _, w := range workloads(objects) {
				if w.component != "etcd" {
					continue
				}
				checked.Add(1)
				args := w.pod.Containers[0].Args
				if !slices.Contains(args, "--listen-client-http-urls=https://127.0.0.1:2382") || !slices.Contains(args, "--client-cert-auth") {
					t.Errorf("%s: %q", w.name, args)
				}
			}
		})
	})
	if checked.Load() == 0 {
		t.Error("no values have an etcd")
	}
}
