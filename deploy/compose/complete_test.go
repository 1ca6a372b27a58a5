package compose

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryServiceIsAContainer checks that each program of the workspace has an image, a
// container and an identity.
func TestEveryServiceIsAContainer(t *testing.T) {
	programs, err := filepath.Glob("../../*/cmd/*/main.go")
	if err != nil || len(programs) < 9 {
		t.Fatalf("%d programs: %v", len(programs), err)
	}
	for _, program := range programs {
		name := filepath.Base(filepath.Dir(program))
		for file, want := range map[string]string{
			"compose.yaml":                    "\n  " + name + ":\n    <<: [*container,",
			"../images/build":                 " " + name + " ",
			"../internal/pki/plan.go":         `newFolder("` + name + `",`,
			"../../docs/operations/images.md": "| " + name + " |",
		} {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.ReplaceAll(string(content), "(frontdoor ", " frontdoor "), want) {
				t.Errorf("%s does not name %s", file, name)
			}
		}
	}
}

// TestFrontdoorPublishesTrust: front doors have a client certificate for extensions, and the
// flags by which authn verifies users and proxies.
func TestFrontdoorPublishesTrust(t *testing.T) {
	content, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	flags := func(service string) (found []string) {
		_, section, _ := strings.Cut(string(content), "\n  "+service+":\n")
		section, _, _ = strings.Cut(section, "\n\n")
		for line := range strings.Lines(section) {
			flag := strings.TrimPrefix(strings.TrimSpace(line), "- ")
			for _, prefix := range []string{"--client-ca-file=", "--requestheader-", "--proxy-client-"} {
				if strings.HasPrefix(flag, prefix) {
					found = append(found, flag)
				}
			}
		}
		return found
	}
	verified, published := flags("authn"), flags("frontdoor")
	want := append(verified, "--proxy-client-cert-file=/pki/proxy-client.crt", "--proxy-client-key-file=/pki/proxy-client.key")
	slices.Sort(published)
	slices.Sort(want)
	if len(verified) != 6 || !slices.Equal(published, want) {
		t.Errorf("authn: %q\nfrontdoor: %q", verified, published)
	}
}

// TestFrontdoorAsksEveryService: the front door can ask each program for its measurements.
func TestFrontdoorAsksEveryService(t *testing.T) {
	content, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, targets, _ := strings.Cut(string(content), "\n    - --status-targets=")
	targets, _, _ = strings.Cut(targets, "\n")
	programs, err := filepath.Glob("../../*/cmd/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, program := range programs {
		name := filepath.Base(filepath.Dir(program))
		_, section, _ := strings.Cut(string(content), "\n  "+name+":\n")
		section, _, _ = strings.Cut(section, "\n\n")
		if !strings.Contains(section, "\n    - --status-address=:8080\n") {
			t.Errorf("%s does not answer other containers", name)
		}
		want = append(want, name+"="+name+":8080")
	}
	found := strings.Split(targets, ",")
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("asked: %q, want %q", found, want)
	}
}
