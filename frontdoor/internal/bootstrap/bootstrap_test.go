package bootstrap_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/bootstrap"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/datafiles"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestPacked: the packed files are those of the folder.
func TestPacked(t *testing.T) {
	want, err := datafiles.Pack(os.DirFS("."), "policy/*.yaml", "fairness.yaml")
	if packed, unread := os.ReadFile("packed.txt"); err != nil || unread != nil || string(want) != string(packed) {
		t.Errorf("packed.txt is out of date (advice: run make gen): %v %v", err, unread)
	}
}

func TestObjectsAreWholeAndUnique(t *testing.T) {
	for i, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s(), vocabulary.Platform(), vocabulary.K8s()} {
		r := release.V121
		if i >= 2 {
			r = release.V136
		}
		objects, err := bootstrap.Objects(v, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, o := range objects {
			metadata := o["metadata"].(map[string]any)
			id := fmt.Sprint(o["kind"], " ", metadata["namespace"], "/", metadata["name"])
			if seen[id] {
				t.Errorf("%s: %s is there twice", v.Name, id)
			}
			seen[id] = true
			if ref, ok := o["roleRef"].(map[string]any); ok && !seen[fmt.Sprint(ref["kind"], " ", metadata["namespace"], "/", ref["name"])] {
				t.Errorf("%s: %s comes before its role", v.Name, id)
			}
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(string(text), "<>") || strings.Contains(string(text), `\u003c`) || strings.Contains(string(text), `."`) {
				t.Errorf("%s: a name was not resolved: %s", v.Name, text)
			}
			if v.Name == "platform" && (strings.Contains(string(text), "k8s.io") || strings.Contains(string(text), "kube")) {
				t.Errorf("a name of the other vocabulary: %s", text)
			}
		}
		for _, id := range []string{"Namespace <nil>/" + v.Namespace("system"), "ClusterRole <nil>/cluster-admin",
			"ClusterRoleBinding <nil>/system:" + v.Namespace("scheduler"),
			"ClusterRoleBinding <nil>/system:node", "RoleBinding " + v.Namespace("system") + "/system::extension-apiserver-authentication-reader",
			"ClusterRole <nil>/system:" + v.Group("certificates.") + ":certificatesigningrequests:nodeclient",
			"ClusterRole <nil>/system:" + v.Group("certificates.") + ":" + strings.TrimPrefix(v.Signers.NodeServing, v.Domain+"/") + "-approver",
			"PriorityLevelConfiguration <nil>/workload-low", "FlowSchema <nil>/" + v.Namespace("system") + "-service-accounts",
			"PriorityClass <nil>/system-node-critical"} {
			if !seen[id] {
				t.Errorf("%s: %s is missing", v.Name, id)
			}
		}
	}
}

// TestRolesGather: roles aggregate all roles with the aggregation labels of the role API
// group, including those of API extensions.
func TestRolesGather(t *testing.T) {
	for name, v := range map[string]vocabulary.Vocabulary{"platform.io": vocabulary.Platform(), "k8s.io": vocabulary.K8s()} {
		objects, err := bootstrap.Objects(v, release.V121, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"clusterRoleSelectors":[{"matchLabels":{"rbac.authorization.` + name + `/aggregate-to-view":"true"}}]}`
		for _, o := range objects {
			if o["kind"] != "ClusterRole" || o["metadata"].(map[string]any)["name"] != "view" {
				continue
			}
			if got, err := json.Marshal(o["aggregationRule"]); err != nil || string(got) != want {
				t.Errorf("%s, %v; want %s", got, err, want)
			}
		}
	}
}

// TestSignerApprovesNodesOnly: csr-signer may sign for all built-in signers, and approve what it approves by itself.
func TestSignerApprovesNodesOnly(t *testing.T) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		objects, err := bootstrap.Objects(v, release.V136, nil)
		if err != nil {
			t.Fatal(err)
		}
		may := map[string][]any{}
		for _, o := range objects {
			if o["kind"] != "ClusterRole" || o["metadata"].(map[string]any)["name"] != "system:portico:csr-signer" {
				continue
			}
			for _, item := range o["rules"].([]any) {
				rule := item.(map[string]any)
				for _, verb := range rule["verbs"].([]any) {
					if names, ok := rule["resourceNames"].([]any); ok {
						may[fmt.Sprint(verb)] = append(may[fmt.Sprint(verb)], names...)
					}
				}
			}
		}
		if want := []any{v.Signers.NodeClient}; !slices.Equal(may["approve"], want) || len(may["sign"]) != 4 {
			t.Errorf("%s: %v, want approve of %v and sign of four", v.Name, may, want)
		}
	}
}

// TestRolesOfReleases: roles and rules follow the release.
func TestRolesOfReleases(t *testing.T) {
	allowed := func(r release.Release, role, verb, resource string) bool {
		objects, err := bootstrap.Objects(vocabulary.K8s(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o["kind"] != "ClusterRole" || o["metadata"].(map[string]any)["name"] != role {
				continue
			}
			for _, rule := range o["rules"].([]any) {
				rule := rule.(map[string]any)
				resources, _ := rule["resources"].([]any)
				verbs, _ := rule["verbs"].([]any)
				if slices.Contains(resources, any(resource)) && slices.Contains(verbs, any(verb)) {
					return true
				}
			}
		}
		return false
	}
	for _, x := range []struct {
		role, verb, resource string
		in121, in136         bool
	}{
		{"system:aggregate-to-edit", "create", "endpoints", true, false},
		{"system:aggregate-to-edit", "create", "resourceclaims", false, true},
		{"system:aggregate-to-edit", "create", "configmaps", true, true},
		{"system:controller:resource-claim-controller", "create", "resourceclaims", false, true},
		{"system:controller:persistent-volume-binder", "get", "secrets", true, false},
		{"system:kube-scheduler", "patch", "resourceclaims/binding", false, true},
		{"system:controller:statefulset-controller", "update", "pods/finalizers", false, true},
		{"system:kubelet-api-admin", "*", "nodes/proxy", true, true},
		{"system:kubelet-api-admin", "*", "nodes/pods", false, true},
		{"system:heapster", "list", "deployments", true, true},
	} {
		if in121, in136 := allowed(release.V121, x.role, x.verb, x.resource), allowed(release.V136, x.role, x.verb, x.resource); in121 != x.in121 || in136 != x.in136 {
			t.Errorf("%s may %s %s: %v at 1.21, %v at 1.36", x.role, x.verb, x.resource, in121, in136)
		}
	}
}

// TestFurtherRoles: features have roles and rules of their own, and releases have subjects of
// their own.
func TestFurtherRoles(t *testing.T) {
	text := func(r release.Release, on ...string) string {
		objects, err := bootstrap.Objects(vocabulary.K8s(), r, func(feature string) bool { return slices.Contains(on, feature) })
		if err != nil {
			t.Fatal(err)
		}
		all, err := json.Marshal(objects)
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	const account = `"name":"leader-election-controller"`
	if strings.Contains(text(release.V121), account) || !strings.Contains(text(release.V136), account) {
		t.Error("the controller that elects leaders may use their locks since 1.36")
	}
	for feature, want := range map[string]string{
		"ClusterTrustBundle":     `"resourceNames":["kubernetes.io/kube-apiserver-serving"]`,
		"PodCertificateRequest":  `"name":"system:controller:podcertificaterequestcleaner"`,
		"GenericWorkload":        `"resources":["podgroups","podgroups/status","workloads"]`,
		"StorageVersionMigrator": `"resources":["storageversionmigrations/status"]`,
		"DRADeviceTaintRules":    `"resources":["devicetaintrules/status"]`,
	} {
		if strings.Contains(text(release.V136), want) || !strings.Contains(text(release.V136, feature), want) {
			t.Errorf("%s is not there exactly with %s", want, feature)
		}
	}
}
