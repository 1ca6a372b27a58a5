package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

func parser(t testing.TB, v vocabulary.Vocabulary) *Parser {
	t.Helper()
	p, err := NewParser(Settings{Vocabulary: v, Release: release.V136, Types: []string{"ABAC", "Node", "RBAC", "Webhook"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func head(v vocabulary.Vocabulary, version string) string {
	return "apiVersion: " + v.Group("apiserver.config.") + "/" + version + "\nkind: AuthorizationConfiguration\nauthorizers:\n"
}

// kubeconfig writes a usable kubeconfig.
func kubeconfig(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: \"https://localhost\"}}]\n" +
		"users: [{name: a, user: {token: abc}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFiles: both versions are read in both vocabularies, each with its own group.
func TestFiles(t *testing.T) {
	hook := "- type: Webhook\n  name: corp\n  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny," +
		" connectionInfo: {type: KubeConfigFile, kubeConfigFile: " + kubeconfig(t) + "}, matchConditions: [{expression: \"'g' in request.groups\"}]}\n"
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		for _, version := range []string{"v1", "v1beta1"} {
			all, err := parser(t, v).Parse([]byte(head(v, version) + hook + strings.Replace(hook, "corp", "second.corp", 1) + "- {type: RBAC, name: rbac}\n"))
			if err != nil {
				t.Errorf("%s, %s: %v", v.Name, version, err)
				continue
			}
			if len(all) != 3 || all[0].Name != "corp" || all[0].Webhook == nil || all[1].Webhook == nil || all[2].Type != "RBAC" || all[2].Webhook != nil {
				t.Errorf("%s, %s: %+v", v.Name, version, all)
			}
		}
	}
	if _, err := parser(t, vocabulary.Platform()).Parse([]byte(head(vocabulary.K8s(), "v1") + "- {type: RBAC, name: rbac}\n")); err == nil || !strings.Contains(err.Error(), "apiVersion") {
		t.Errorf("the group of another vocabulary: %v", err)
	}
}

// TestRefusedFiles: the error names the field.
func TestRefusedFiles(t *testing.T) {
	v := vocabulary.Platform()
	p, file := parser(t, v), kubeconfig(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hook := func(replaced, with string) string {
		all := "- type: Webhook\n  name: corp\n  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny," +
			" connectionInfo: {type: KubeConfigFile, kubeConfigFile: " + file + "}, matchConditions: [{expression: \"true\"}]}\n"
		if !strings.Contains(all, replaced) {
			t.Fatalf("no %q", replaced)
		}
		return head(v, "v1") + strings.Replace(all, replaced, with, 1)
	}
	for name, c := range map[string]struct{ content, want string }{
		"nothing":                {"", `apiVersion: ""`},
		"no YAML":                {"a: [", "yaml"},
		"a list":                 {"[]", "array"},
		"another version":        {head(v, "v2"), "use apiserver.config.platform.io/v1"},
		"another kind":           {strings.Replace(head(v, "v1"), "Authorization", "Authentication", 1), "kind:"},
		"an unknown field":       {head(v, "v1") + "- {type: RBAC, name: rbac, more: 1}\n", `unknown field "authorizers[0].more"`},
		"a repeated field":       {head(v, "v1") + "- {type: RBAC, type: Node, name: rbac}\n", `"type" already set`},
		"no authorizer":          {head(v, "v1"), "authorizers: Required value: at least one authorization mode must be defined"},
		"no type":                {head(v, "v1") + "- {name: rbac}\n", "authorizers[0].type: Required value"},
		"an unknown type":        {head(v, "v1") + "- {type: Magic, name: magic}\n", "authorizers[0].type: Unsupported value"},
		"a type twice":           {head(v, "v1") + "- {type: RBAC, name: rbac}\n- {type: RBAC, name: other}\n", "authorizers[1].type: Duplicate value"},
		"no name":                {head(v, "v1") + "- {type: RBAC}\n", "authorizers[0].name: Required value"},
		"another name":           {head(v, "v1") + "- {type: RBAC, name: roles}\n", "authorizers[0].name: Invalid value: \"roles\": expected name rbac for authorizer RBAC"},
		"a name twice":           {hook("corp", "rbac") + "- {type: RBAC, name: rbac}\n", "authorizers[1].name: Duplicate value"},
		"an invalid name":        {hook("corp", "a_b"), "authorizers[0].name: Invalid value"},
		"no webhook":             {head(v, "v1") + "- {type: Webhook, name: corp}\n", "authorizers[0].webhook: Required value"},
		"a webhook of RBAC":      {hook("type: Webhook", "type: RBAC"), "authorizers[0].webhook: Invalid value"},
		"no timeout":             {hook("timeout: 3s, ", ""), "authorizers[0].timeout: Required value"},
		"a long timeout":         {hook("timeout: 3s", "timeout: 31s"), "must be > 0s and <= 30s"},
		"a negative TTL":         {hook("timeout: 3s", "timeout: 3s, authorizedTTL: -1s"), "authorizers[0].authorizedTTL: Invalid value"},
		"a review of v2":         {hook("subjectAccessReviewVersion: v1", "subjectAccessReviewVersion: v2"), "authorizers[0].subjectAccessReviewVersion: Unsupported value"},
		"no version of reviews":  {hook("matchConditionSubjectAccessReviewVersion: v1, ", ""), "required if match conditions are specified"},
		"no failure policy":      {hook("failurePolicy: Deny,", ""), "authorizers[0].failurePolicy: Required value"},
		"another failure policy": {hook("failurePolicy: Deny,", "failurePolicy: Allow,"), "authorizers[0].failurePolicy: Unsupported value"},
		"in the cluster":         {hook("{type: KubeConfigFile, kubeConfigFile: "+file+"}", "{type: InClusterConfig}"), "authorizers[0].connectionInfo.type: Invalid value: \"InClusterConfig\""},
		"a relative file":        {hook(file, "config"), "must be an absolute path"},
		"a missing file":         {hook(file, file+"x"), "error loading file"},
		"a file without server":  {hook(file, empty), "authorizers[0].connectionInfo.kubeConfigFile: " + empty},
		"an expression of text":  {hook(`"true"`, `"request.user"`), "authorizers[0].matchConditions[0].expression: Invalid value: \"request.user\": must evaluate to bool"},
		"an invalid expression":  {hook(`"true"`, `"request.nobody == 'a'"`), "compilation failed"},
		"an expression twice":    {hook(`{expression: "true"}`, `{expression: "true"}, {expression: "true"}`), "matchConditions[1].expression: Duplicate value"},
		"too many expressions":   {hook(`{expression: "true"}`, strings.Repeat(`{expression: "true"}, `, 65)), "matchConditions: Too many: 65"},
		"an empty expression":    {hook(`"true"`, `" "`), "matchConditions[0].expression: Required value"},
	} {
		if _, err := p.Parse([]byte(c.content)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzParse: every authorizer of a file that is accepted has a known type, a webhook exactly if it is of
// that type, and a name of its own.
func FuzzParse(f *testing.F) {
	v := vocabulary.Platform()
	p, path := parser(f, v), kubeconfig(f)
	for _, authorizers := range []string{"", "- {type: RBAC, name: rbac}\n- {type: Node, name: node}\n", "- {type: Webhook, name: a, webhook: {timeout: 3s, subjectAccessReviewVersion: v1," +
		" matchConditionSubjectAccessReviewVersion: v1, failurePolicy: NoOpinion, connectionInfo: {type: KubeConfigFile, kubeConfigFile: " + path + "}, matchConditions: [{expression: \"request.user == 'a'\"}]}}\n"} {
		f.Add([]byte(head(v, "v1") + authorizers))
		f.Add([]byte(head(v, "v1beta1") + authorizers))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		all, err := p.Parse(content)
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, a := range all {
			if names[a.Name] || a.Name == "" || (a.Type == "Webhook") != (a.Webhook != nil) || !strings.Contains("ABAC Node RBAC Webhook", a.Type) {
				t.Errorf("%q: %+v", content, a)
			}
			names[a.Name] = true
		}
		if len(all) == 0 {
			t.Errorf("%q has no authorizers", content)
		}
	})
}
