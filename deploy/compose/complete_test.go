package compose

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/vocabulary"
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
			"../../internal/pki/plan.go":      `newFolder("` + name + `",`,
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

// commands returns the arguments of each service as Compose passes them, with these variables.
func commands(t *testing.T, variables map[string]string) map[string][]string {
	t.Helper()
	content, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct{ Command []string }
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for name, service := range file.Services {
		for _, arg := range service.Command {
			found[name] = append(found[name], os.Expand(arg, func(expression string) string {
				variable, value, _ := strings.Cut(expression, ":-")
				return cmp.Or(variables[variable], value)
			}))
		}
	}
	return found
}

// TestOverrides: the variable gives the store and the watch hub an etcd of single resources; without it
// they have none.
func TestOverrides(t *testing.T) {
	for value, want := range map[string][]string{
		"": nil,
		"/events#https://events-1:2379;https://events-2:2379,coordination.k8s.io/leases#https://leases-1:2379": {"events https://events-1:2379 https://events-2:2379", "leases.coordination.k8s.io https://leases-1:2379"},
	} {
		all := commands(t, map[string]string{"PORTICO_ETCD_SERVERS_OVERRIDES": value})
		for _, name := range []string{"store", "watch-hub"} {
			flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
			flags.ParseErrorsAllowlist.UnknownFlags = true
			etcd.Flags(flags)
			etcd.OverrideFlag(flags)
			if err := flags.Parse(all[name]); err != nil {
				t.Fatal(err)
			}
			overrides, err := etcd.ParseOverrides(flags, vocabulary.K8s())
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, o := range overrides {
				found = append(found, o.Name+" "+strings.Join(o.Servers, " "))
			}
			if main, _ := flags.GetStringSlice("etcd-servers"); len(main) != 3 || !slices.Equal(found, want) {
				t.Errorf("%s with %q: %q, want %q, beside %q", name, value, found, want, main)
			}
		}
		for name, args := range all {
			if used := slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--etcd-servers=") }); used != (name == "store" || name == "watch-hub" || name == "backup") {
				t.Errorf("%s uses etcd: %v", name, used)
			}
		}
	}
}

// TestOneRelease: all services of the suite serve the same release with the same feature gates; without the variables
// they have their defaults.
func TestOneRelease(t *testing.T) {
	programs, err := filepath.Glob("../../*/cmd/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, variables := range []map[string]string{{}, {"PORTICO_EMULATED_VERSION": "1.36", "PORTICO_FEATURE_GATES": "AllBeta=true,ServerSideApply=false"}} {
		all := commands(t, variables)
		for _, program := range programs {
			name := filepath.Base(filepath.Dir(program))
			for flag, variable := range map[string]string{"--emulated-version=": "PORTICO_EMULATED_VERSION", "--feature-gates=": "PORTICO_FEATURE_GATES"} {
				if !slices.Contains(all[name], flag+variables[variable]) {
					t.Errorf("%s with %v: %q has not %s%s", name, variables, all[name], flag, variables[variable])
				}
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

// TestBackupReachesEveryEtcd: a backup reads the etcds of the store, as itself, and the containers of backups run only when they are called.
func TestBackupReachesEveryEtcd(t *testing.T) {
	all := commands(t, map[string]string{"PORTICO_ETCD_SERVERS_OVERRIDES": "/events#https://events-1:2379"})
	etcds := func(name string) (found []string) {
		for _, arg := range all[name] {
			if strings.HasPrefix(arg, "--etcd-") {
				found = append(found, arg)
			}
		}
		return found
	}
	if of := etcds("backup"); len(of) != 5 || !slices.Equal(of, etcds("store")) {
		t.Errorf("the backup has the flags %q, and the store %q", of, etcds("store"))
	}
	content, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Restart           string
			Profiles, Volumes []string
		}
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	for name, volumes := range map[string][]string{
		"backup":  {"${PORTICO_STATE:-./state}/pki/backup:/pki:ro", "${PORTICO_BACKUPS:-./backups}:/backups"},
		"restore": {"${PORTICO_BACKUPS:-./backups}:/backups:ro", "etcd-1:/data/etcd-1", "etcd-2:/data/etcd-2", "etcd-3:/data/etcd-3"},
	} {
		if s := file.Services[name]; s.Restart != "no" || !slices.Equal(s.Profiles, []string{"backup"}) || !slices.Equal(s.Volumes, volumes) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
