package abac

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

const file = `# who may do what

{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"*","resource":"*","apiGroup":"*","nonResourcePath":"*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"readers","readonly":true,"namespace":"shop","resource":"pods","apiGroup":""}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"*","readonly":true,"nonResourcePath":"/docs/*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"bob","group":"admins","namespace":"shop","resource":"*","apiGroup":"apps"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"namespace":"*","resource":"*","apiGroup":"*"}}
{"user":"old","resource":"pods"}
{"readonly":true,"resource":"events"}
`

func TestAuthorize(t *testing.T) {
	all, err := parse([]byte(file), vocabulary.K8s())
	if err != nil {
		t.Fatal(err)
	}
	user := func(name string, groups ...string) services.UserInfo {
		return services.UserInfo{Name: name, Groups: append(groups, services.GroupAuthenticated)}
	}
	for name, c := range map[string]struct {
		ask  services.Attributes
		want bool
	}{
		"everything":                        {services.Attributes{User: user("alice"), Verb: "delete", Group: "apps", Resource: "deployments", Namespace: "x"}, true},
		"every path":                        {services.Attributes{User: user("alice"), Verb: "get", Path: "/metrics"}, true},
		"by group":                          {services.Attributes{User: user("carl", "readers"), Verb: "list", Resource: "pods", Namespace: "shop"}, true},
		"read-only":                         {services.Attributes{User: user("carl", "readers"), Verb: "create", Resource: "pods", Namespace: "shop"}, false},
		"another namespace":                 {services.Attributes{User: user("carl", "readers"), Verb: "list", Resource: "pods", Namespace: "x"}, false},
		"all namespaces":                    {services.Attributes{User: user("carl", "readers"), Verb: "list", Resource: "pods"}, false},
		"another API group":                 {services.Attributes{User: user("carl", "readers"), Verb: "list", Group: "apps", Resource: "pods", Namespace: "shop"}, false},
		"a path for all":                    {services.Attributes{User: user("carl"), Verb: "get", Path: "/docs/a"}, true},
		"another path":                      {services.Attributes{User: user("carl"), Verb: "get", Path: "/docs"}, false},
		"all means authenticated":           {services.Attributes{User: services.UserInfo{Name: services.UserAnonymous, Groups: []string{services.GroupUnauthenticated}}, Verb: "get", Path: "/docs/a"}, false},
		"user and group":                    {services.Attributes{User: user("bob", "admins"), Verb: "create", Group: "apps", Resource: "deployments", Namespace: "shop"}, true},
		"user without group":                {services.Attributes{User: user("bob"), Verb: "create", Group: "apps", Resource: "deployments", Namespace: "shop"}, false},
		"a policy for nobody":               {services.Attributes{User: user("carl"), Verb: "get", Resource: "secrets", Namespace: "x"}, false},
		"the old form, any namespace":       {services.Attributes{User: user("old"), Verb: "delete", Group: "any", Resource: "pods", Namespace: "x"}, true},
		"the old form, another type":        {services.Attributes{User: user("old"), Verb: "get", Resource: "secrets", Namespace: "x"}, false},
		"the old form, any user":            {services.Attributes{User: user("carl"), Verb: "watch", Resource: "events"}, true},
		"the old form, read-only":           {services.Attributes{User: user("carl"), Verb: "create", Resource: "events", Namespace: "x"}, false},
		"the old form is no path by itself": {services.Attributes{User: user("carl"), Verb: "get", Path: "/metrics"}, false},
	} {
		if d, err := all.Authorize(t.Context(), c.ask); err != nil || d.Allowed != c.want || d.Denied {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	rules, err := all.Rules(t.Context(), services.RulesRequest{User: user("carl", "readers"), Namespace: "shop"})
	if err != nil || len(rules.Resource) != 2 || len(rules.NonResource) != 1 || rules.Incomplete {
		t.Errorf("rules: %+v, %v", rules, err)
	}
}

// TestBadFiles: the error names the line.
func TestBadFiles(t *testing.T) {
	for content, want := range map[string]string{
		"{}\n# a comment\n{": ":3: ",
		`{"apiVersion":"abac.authorization.kubernetes.io/v9","kind":"Policy","spec":{}}`:      ":1: Policy of",
		`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy"}`:           "spec: required value",
		`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":[]}`: ":1: json",
	} {
		path := filepath.Join(t.TempDir(), "policy")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path, vocabulary.K8s()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none"), vocabulary.K8s()); err == nil {
		t.Error("a file that does not exist")
	}
}

// FuzzParse: no line makes a policy that allows an unauthenticated user by a wildcard.
func FuzzParse(f *testing.F) {
	for line := range strings.Lines(file) {
		f.Add(line)
	}
	nobody := services.UserInfo{Name: services.UserAnonymous, Groups: []string{services.GroupUnauthenticated}}
	f.Fuzz(func(t *testing.T, line string) {
		all, err := parse([]byte(line), vocabulary.K8s())
		if err != nil {
			return
		}
		for _, p := range all {
			if p.covers(nobody) && p.User != nobody.Name && p.Group != services.GroupUnauthenticated {
				t.Errorf("%q covers an unauthenticated user", line)
			}
		}
	})
}
