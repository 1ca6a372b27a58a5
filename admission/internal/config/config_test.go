package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
)

func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const head = "apiVersion: apiserver.config.platform.io/v1\nkind: AdmissionConfiguration\n"

// values is a document of the tests.
type values struct {
	Name  string `json:"name"`
	Count int32  `json:"count"`
}

func TestRead(t *testing.T) {
	k8s, platform := vocabulary.K8s(), vocabulary.Platform()
	for name, x := range map[string]struct {
		vocabulary vocabulary.Vocabulary
		content    string
		want       string // the plugins and their documents
	}{
		"inline":               {platform, head + "plugins: [{name: A, configuration: {name: x}}]", `A={"name":"x"}`},
		"both":                 {platform, head + "plugins: [{name: A, path: /missing, configuration: {name: x}}, {name: B, configuration: null}]", `A={"name":"x"} B`},
		"JSON":                 {platform, `{"apiVersion":"apiserver.config.platform.io/v1","kind":"AdmissionConfiguration","plugins":[]}`, ""},
		"the older version":    {platform, "apiVersion: apiserver.platform.io/v1alpha1\nkind: AdmissionConfiguration\nplugins: [{name: A}]", "A"},
		"the original":         {k8s, "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: A}]", "A"},
		"the original, older":  {k8s, "apiVersion: apiserver.k8s.io/v1alpha1\nkind: AdmissionConfiguration\nplugins: [{name: A}]", "A"},
		"without a kind":       {k8s, "podNodeSelectorPluginConfig: {a: b}", `PodNodeSelector={"podNodeSelectorPluginConfig":{"a":"b"}}`},
		"without a kind, JSON": {k8s, `{"imagePolicy":{}}`, `ImagePolicyWebhook={"imagePolicy":{}}`},
	} {
		documents, err := Read(written(t, "admission.yaml", x.content), x.vocabulary)
		var got []string
		for _, d := range documents {
			if d.Given != (d.json != nil) {
				t.Errorf("%s: %s is given: %v, has %s", name, d.Plugin, d.Given, d.json)
			}
			got = append(got, strings.TrimSuffix(d.Plugin+"="+string(d.json), "="))
		}
		if err != nil || strings.Join(got, " ") != x.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for name, x := range map[string]struct{ content, want string }{
		"another version":         {"apiVersion: v1\nkind: AdmissionConfiguration", "admission.yaml: apiVersion:"},
		"the original's version":  {"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration", "use AdmissionConfiguration of apiserver.config.platform.io/v1"},
		"another kind":            {"apiVersion: apiserver.config.platform.io/v1\nkind: Other", `kind "Other"`},
		"an empty file":           {"", "admission.yaml: "},
		"a list":                  {"[]", "admission.yaml: "},
		"what is no YAML":         {"a: [", "admission.yaml: "},
		"an unknown field":        {head + "plugin: []", `unknown field "plugin"`},
		"an unknown field within": {head + "plugins: [{name: A, file: x}]", `unknown field "plugins[0].file"`},
		"a field twice":           {head + "plugins: []\nplugins: []", `"plugins" already set`},
		"a wrong type":            {head + "plugins: [{name: 5}]", "plugins.name"},
		"no name":                 {head + "plugins: [{path: x}]", "plugins[0].name"},
		"a name twice":            {head + "plugins: [{name: A}, {name: A}]", "plugins[1].name"},
		"a missing file":          {head + "plugins: [{name: A, path: missing.yaml}]", "plugins[0].path: open "},
		"two documents":           {head + "---\n" + head, "more than one document"},
		"what is legacy and more": {"imagePolicy: {}\nother: 1", "admission.yaml: apiVersion:"},
		"what is too large":       {head + "# " + strings.Repeat("x", maxFile), "larger than"},
		"names that explode": {head + "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]", "admission.yaml: "},
	} {
		_, err := Read(written(t, "admission.yaml", x.content), vocabulary.Platform())
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "missing.yaml"), vocabulary.Platform()); err == nil || !strings.Contains(err.Error(), "missing.yaml") {
		t.Errorf("a file that is missing: %v", err)
	}
	if _, err := Read(t.TempDir(), vocabulary.Platform()); err == nil {
		t.Error("a folder is read")
	}
}

// TestPaths: a path is relative to the file that names it.
func TestPaths(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"admission.yaml": head + "plugins: [{name: A, path: more/a.yaml}]", "more/a.yaml": "name: x\nkind: bad"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	documents, err := Read(filepath.Join(folder, "admission.yaml"), vocabulary.Platform())
	if err != nil || len(documents) != 1 {
		t.Fatalf("%v, %v", documents, err)
	}
	d := documents[0]
	if want := filepath.Join(folder, "more", "key.pem"); d.Path("key.pem") != want || d.Path(want) != want {
		t.Errorf("paths start at %s", d.Path("key.pem"))
	}
	var v values
	if err := d.Decode(&v); err == nil || !strings.Contains(err.Error(), `more/a.yaml: `) || !strings.Contains(err.Error(), `unknown field "kind"`) {
		t.Errorf("got %v", err)
	}
}

// TestDecode: errors name the file and the field.
func TestDecode(t *testing.T) {
	for content, want := range map[string]string{
		`{name: x, count: 3}`: "",
		`{name: x, cont: 3}`:  `admission.yaml: plugins[0].configuration: unknown field "cont"`,
		`{count: "3"}`:        "values.count",
		`{Name: x}`:           `unknown field "Name"`,
		`{count: 3000000000}`: "values.count",
	} {
		documents, err := Read(written(t, "admission.yaml", head+"plugins: [{name: A, configuration: "+content+"}]"), vocabulary.Platform())
		if err != nil {
			t.Fatal(err)
		}
		var v values
		if err := documents[0].Decode(&v); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// FuzzParse reads files: whatever is in them, there is an error or a document that is
// JSON, for one plugin each, and no file but those that they name is read.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{head + "plugins: [{name: A, configuration: {name: x}}]", "imagePolicy: {}", `{"podNodeSelectorPluginConfig":{"a":"b"}}`, "a: &a [*a]", head + "---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if strings.Contains(string(content), "path") {
			t.Skip("it names files of this machine")
		}
		documents, err := parse("admission.yaml", content, vocabulary.Platform())
		if err != nil && !strings.HasPrefix(err.Error(), "admission.yaml: ") {
			t.Errorf("the error does not name the file: %v", err)
		}
		seen := map[string]bool{}
		for _, d := range documents {
			if d.Plugin == "" || seen[d.Plugin] || d.Given && !json.Valid(d.json) {
				t.Errorf("document %q: %s", d.Plugin, d.json)
			}
			seen[d.Plugin] = true
			var v values
			_ = d.Decode(&v)
		}
	})
}
