package e2e

import (
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/vocabulary"
)

// admissionService is an admission service that runs beside an all-in-one.
type admissionService struct {
	folder                  string
	address, reviews, pages string
	certificates            string
	*process
}

// startAdmissionService builds the program of a folder and runs it there, as its README says,
// but on free ports.
func startAdmissionService(t *testing.T, folder string, args ...string) *admissionService {
	t.Helper()
	s := &admissionService{folder: folder, certificates: filepath.Join(t.TempDir(), "certificates")}
	for _, address := range []*string{&s.address, &s.reviews, &s.pages} {
		var err error
		if *address, err = loopback.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	program, err := filepath.Abs(filepath.Join(root, "bin", filepath.Base(folder)))
	if err != nil {
		t.Fatal(err)
	}
	if err := build(folder, program, nil, "."); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, append([]string{"--address=" + s.address, "--review-address=" + s.reviews, "--status-address=" + s.pages, "--cert-dir=" + s.certificates}, args...)...)
	command.Dir = folder
	s.process = spawnCommand(t, t.TempDir(), command)
	eventually(t, "the admission service is ready", func() bool {
		if s.hasEnded() {
			t.Fatalf("%s ended: %s", s.name, s.tail())
		}
		response, err := http.Get("http://" + s.pages + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return s
}

// manifest returns a manifest of the service's folder with its CA and addresses; ports are
// those of its README for gRPC and AdmissionReview.
func (s *admissionService) manifest(t *testing.T, name string, ports [2]string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(s.certificates, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("127.0.0.1:"+ports[0], s.address, "127.0.0.1:"+ports[1], s.reviews,
		"CA_BUNDLE", base64.StdEncoding.EncodeToString(ca)).Replace(string(text))
}

// refused returns the output of a command line that fails.
func (k *kubectl) refused(t *testing.T, line string) string {
	t.Helper()
	out, err := k.command(t.Context(), line).CombinedOutput()
	if err == nil {
		t.Errorf("kubectl %s succeeded: %s", line, out)
	}
	return string(out)
}

// registrations are the manifests of the examples that register a service.
func registrations() []string { return []string{"webhooks.yaml", "admissionservice.yaml"} }

// TestImageDigests works with admission/examples/image-digests.
func TestImageDigests(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds kubectl")
	}
	for _, registration := range registrations() {
		t.Run(registration, func(t *testing.T) {
			t.Parallel()
			a := startAllInOne(t, vocabulary.K8s())
			k := newKubectl(t, a.Cluster)
			s := startAdmissionService(t, filepath.Join(root, "admission/examples/image-digests"))
			k.run(t, "apply -f -", s.manifest(t, registration, [2]string{"9443", "9444"}))
			eventually(t, "the service is asked", func() bool {
				_, err := k.command(t.Context(), "run probe --image=nginx:1.28 --dry-run=server").CombinedOutput()
				return err != nil
			})
			k.run(t, "run known --image=nginx:1.27", "")
			if image := k.run(t, "get pod known -o jsonpath={.spec.containers[0].image}", ""); !strings.HasPrefix(image, "docker.io/library/nginx:1.27@sha256:6af7") {
				t.Errorf("the image is %s", image)
			}
			if out := k.refused(t, "run unknown --image=nginx:1.28"); !strings.Contains(out, `spec.containers[0].image: Invalid value: "nginx:1.28": docker.io/library/nginx:1.28 has no digest`) {
				t.Errorf("%s", out)
			}
			s.stop(t)
			if out := k.refused(t, "run unknown --image=nginx:1.27"); !strings.Contains(out, "image-digests") {
				t.Errorf("without the service: %s", out)
			}
		})
	}
}

// TestCostLimits works with admission/examples/cost-limits, which is a client of the API too.
func TestCostLimits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds kubectl")
	}
	const pod = `run NAME --image=web --overrides={"spec":{"containers":[{"name":"c","image":"web","resources":{"requests":{"cpu":"CORES"}}}]}}`
	line := func(name, cores string) string { return strings.NewReplacer("NAME", name, "CORES", cores).Replace(pod) }
	for _, registration := range registrations() {
		t.Run(registration, func(t *testing.T) {
			t.Parallel()
			a := startAllInOne(t, vocabulary.K8s())
			k := newKubectl(t, a.Cluster)
			s := startAdmissionService(t, filepath.Join(root, "admission/examples/cost-limits"), "--kubeconfig="+filepath.Join(a.Dir, "kubeconfig"))
			k.run(t, "apply -f -", s.manifest(t, registration, [2]string{"9543", "9544"}))
			eventually(t, "the service is asked", func() bool {
				_, err := k.command(t.Context(), line("probe", "100")+" --dry-run=server").CombinedOutput()
				return err != nil
			})
			k.run(t, line("small", "2"), "")
			eventually(t, "the pod is known", func() bool {
				return strings.Contains(k.refused(t, line("large", "1")), "it costs 0.0400 an hour; of the budget of 0.1000, 0.0200 is left")
			})
			k.run(t, "delete pod small --now", "")
			eventually(t, "the pod is gone", func() bool {
				_, err := k.command(t.Context(), line("large", "1")).CombinedOutput()
				return err == nil
			})
		})
	}
}
