package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/admission/sdk/sdktest"
)

const (
	known = "sha256:6af79ae5de407283dcea8b00d5c37ace95441fd58a8b1d2aa1ed93f5511bb18c"
	other = "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	full  = "docker.io/library/nginx:1.27@" + known
)

// configured returns the service with a file of digests, and the file.
func configured(t *testing.T) (sdk.Service, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "digests.yaml")
	write(t, file, "images: {nginx:1.27: "+known+"}")
	s := service()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	s.Flags(flags)
	if err := flags.Parse([]string{"--digests=" + file}); err != nil {
		t.Fatal(err)
	}
	return s, file
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func pod(images ...string) string {
	var containers []string
	for _, image := range images {
		containers = append(containers, `{"name":"c","image":"`+image+`","future":{"kept":true}}`)
	}
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[` + strings.Join(containers, ",") + `]}}`
}

func TestContract(t *testing.T) {
	sdktest.Contract(t, func(t *testing.T) sdk.Service {
		s, _ := configured(t)
		return s
	}, sdktest.Example{
		Admitted: []sdk.Request{sdktest.Create(pod("nginx:1.27")), sdktest.Create(pod("web@" + other)), sdktest.Update(pod("old:1"), pod("old:1"))},
		Refused:  []sdk.Request{sdktest.Create(pod("nginx:1.28")), sdktest.Create(pod("web@"+other, "x")), sdktest.Update(pod("old:1"), pod("old:2"))},
	})
}

func TestImages(t *testing.T) {
	s, _ := configured(t)
	caller := sdktest.Start(t, s)
	for image, want := range map[string]string{
		"nginx:1.27":                           full,
		"docker.io/nginx:1.27":                 full,
		"index.docker.io/library/nginx:1.27":   full,
		"nginx@" + other:                       "nginx@" + other,
		"nginx:1.27@" + other:                  "nginx:1.27@" + other,
		"localhost:5000/a/b@" + other:          "localhost:5000/a/b@" + other,
		"nginx":                                "",
		"nginx:1.28":                           "",
		"evil.example/nginx:1.27":              "",
		"evil.example/library/nginx:1.27":      "",
		"nginx@sha256:12":                      "",
		"nginx@md5:" + strings.Repeat("0", 32): "",
		"NGINX@" + other:                       "",
		"":                                     "",
		" nginx:1.27":                          "",
		"nginx:1.27@" + known + "@" + known:    "",
		"docker.io/library/nginx:1.27\\u0000":  "",
		"xn--nginx:1.27@sha256:" + known[7:12]: "",
	} {
		got := sdktest.Review(t.Context(), caller, sdktest.Create(pod(image)))
		if want == "" {
			if got.Err == nil || got.Err.Code != 422 || got.Err.Details.Causes[0].Field != "spec.containers[0].image" {
				t.Errorf("%q: %+v", image, got.Err)
			}
			continue
		}
		var p struct {
			Spec struct {
				Containers []struct {
					Image  string
					Future map[string]bool
				}
			}
		}
		got.Into(t, &p)
		if p.Spec.Containers[0].Image != want || !p.Spec.Containers[0].Future["kept"] {
			t.Errorf("%q: %s", image, got.Object)
		}
	}
}

// TestAllContainers: every kind of container is checked, and the message names each image.
func TestAllContainers(t *testing.T) {
	s, _ := configured(t)
	caller := sdktest.Start(t, s)
	got := sdktest.Review(t.Context(), caller, sdktest.Create(`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {
		initContainers: [{image: "nginx:1.27"}, {image: a}], containers: [{image: "nginx:1.27"}, {image: b}], ephemeralContainers: [{image: c}]}}`))
	var fields []string
	for _, cause := range got.Err.Details.Causes {
		fields = append(fields, cause.Field)
	}
	if want := "spec.initContainers[1].image spec.containers[1].image spec.ephemeralContainers[0].image"; strings.Join(fields, " ") != want {
		t.Errorf("%q", fields)
	}
	if got.Audit["pinned"] != "nginx:1.27 is "+full+", nginx:1.27 is "+full {
		t.Errorf("%v", got.Audit)
	}
	ephemeral := func(image string) sdk.Request {
		debug := `{apiVersion: v1, kind: EphemeralContainers, metadata: {name: p}, ephemeralContainers: [{image: "` + image + `"}]}`
		r := sdktest.Update(`{apiVersion: v1, kind: EphemeralContainers, metadata: {name: p}}`, debug)
		r.Resource, r.Subresource = "pods", "ephemeralcontainers"
		return r
	}
	if got := sdktest.Review(t.Context(), caller, ephemeral("busybox")); got.Err == nil {
		t.Error("an ephemeral container without a digest is admitted")
	}
	if got := sdktest.Review(t.Context(), caller, ephemeral("nginx:1.27")); got.Err != nil || !got.Changed || !strings.Contains(string(got.Object), full) {
		t.Errorf("%+v", got)
	}
	status := sdktest.Update(pod("old:1"), pod("old:2"))
	status.Subresource = "status"
	if got := sdktest.Review(t.Context(), caller, status); got.Err != nil {
		t.Errorf("the status of a pod is refused: %v", got.Err)
	}
}

func TestTheFileIsReadAgain(t *testing.T) {
	s, file := configured(t)
	caller := sdktest.Start(t, s)
	admitted := func() bool {
		return sdktest.Review(t.Context(), caller, sdktest.Create(pod("web:2"))).Err == nil
	}
	if admitted() {
		t.Fatal("admitted")
	}
	write(t, file, "images: {nginx:1.27: "+known+", web:2: "+other+"}")
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.Now().Add(10 * readEvery); !admitted(); <-ticks.C {
		if time.Now().After(deadline) {
			t.Fatal("the file is not read again")
		}
	}
	write(t, file, "images: [")
	for deadline := time.Now().Add(2 * readEvery); time.Now().Before(deadline); <-ticks.C {
		if !admitted() {
			t.Fatal("an invalid file replaces a valid one")
		}
	}
}

func TestInvalidFiles(t *testing.T) {
	for content, want := range map[string]string{
		"images: [":                  "yaml",
		"image: {}":                  "unknown field",
		"images: {a: b}":             `"a": "b": invalid`,
		"images: {A: " + known + "}": `"A"`,
		"images: {a@" + known + ": " + known + "}":            "has a digest already",
		"images: {a: sha256:12}":                              "invalid",
		"images: {a: " + known + ", a:latest: " + known + "}": "is named twice",
	} {
		s, file := configured(t)
		write(t, file, content)
		if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", content, err, want)
		}
	}
	if content, err := os.ReadFile("digests.yaml"); err != nil {
		t.Error(err)
	} else if d, err := parseDigests([][]byte{content}); err != nil || len(d) == 0 {
		t.Errorf("the file of the example: %v, %v", d, err)
	}
	if !json.Valid([]byte(pod("a"))) {
		t.Error("the pod of the tests is not JSON")
	}
}
