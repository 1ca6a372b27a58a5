package admission_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// statusOf returns the stored status of an AdmissionService, and the revision.
func statusOf(t *testing.T, c *fake.Cluster, name string) (admissionservice.Status, int64) {
	t.Helper()
	o, err := c.Get(t.Context(), services.GetRequest{Key: resource.Key{GroupResource: admissionServices, Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	var stored struct{ Status admissionservice.Status }
	if err := json.Unmarshal(o.JSON, &stored); err != nil {
		t.Fatal(err)
	}
	return stored.Status, o.Revision
}

// TestStatusOfServices: the status has the conditions, the state of each replica and the
// counts; it is written when something changes, and not for every call.
func TestStatusOfServices(t *testing.T) {
	c := cluster(t)
	d := delegated(t, &delegate{})
	d.declare(t, c, "good")
	declare(t, c, "dead", fmt.Sprintf(`"endpoint":{"addresses":[%q]}`, gone(t)), `"failurePolicy":"Ignore"`)
	declare(t, c, "wrong", `"mode":"Sometimes"`)
	a := startedWith(t, c, c.Store())
	for range 10 {
		if _, err := a.Validate(t.Context(), named("c")); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name, condition string, value bool) func() bool {
		return func() bool {
			status, _ := statusOf(t, c, name)
			return len(status.Conditions) == 2 && meta.IsStatusConditionPresentAndEqual(status.Conditions, condition, map[bool]metav1.ConditionStatus{true: "True", false: "False"}[value])
		}
	}
	until(t, "good is available", is("good", "Available", true))
	until(t, "dead is not", is("dead", "Available", false))
	until(t, "wrong is not accepted", is("wrong", "Accepted", false))
	good, revision := statusOf(t, c, "good")
	if len(good.Observers) != 1 || good.Observers[0].Breaker != "Closed" || good.ObservedGeneration != 1 ||
		len(good.Observers[0].Replicas) != 1 || good.Observers[0].Replicas[0] != (admissionservice.Replica{Address: d.address, Ready: true, Breaker: "Closed"}) {
		t.Errorf("good: %+v", good)
	}
	if wrong, _ := statusOf(t, c, "wrong"); !strings.Contains(wrong.Conditions[0].Message, "spec.mode: unsupported value") {
		t.Errorf("wrong: %+v", wrong)
	}
	if dead, _ := statusOf(t, c, "dead"); !strings.Contains(dead.Conditions[1].Message, "cannot call it") {
		t.Errorf("dead: %+v", dead)
	}
	for range 100 {
		if _, err := a.Validate(t.Context(), named("c")); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(1500 * time.Millisecond) // longer than the interval of the writer
	if _, now := statusOf(t, c, "good"); now != revision {
		t.Errorf("the status was written again, at %d after %d", now, revision)
	}
	d.server.Stop()
	until(t, "good is not available", is("good", "Available", false))
}

// TestServicesInAFile: services of a file are asked like those of objects; a wrong file
// refuses to start, and a wrong replacement is kept out.
func TestServicesInAFile(t *testing.T) {
	c := cluster(t)
	d := delegated(t, &delegate{validate: refusing})
	fields := []string{fmt.Sprintf(`"endpoint":{"addresses":[%q]}`, d.address),
		fmt.Sprintf(`"trust":{"serverName":"delegate","caBundle":%q}`, base64.StdEncoding.EncodeToString(d.ca))}
	filed := func(name string, more ...string) string {
		text := declaration(t, name, append(fields, more...)...)
		return strings.NewReplacer(`,"uid":"uid-of-`+name+`"`, "", `"generation":1,`, "").Replace(text)
	}
	path := filepath.Join(t.TempDir(), "services.yaml")
	write := func(documents ...string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.Join(documents, "\n---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for says, documents := range map[string][]string{
		"document 1: it is":                       {"{kind: Pod, apiVersion: v1}"},
		`unknown field "speck"`:                   {strings.Replace(filed("a"), `"spec"`, `"speck"`, 1)},
		`unknown field "moode"`:                   {filed("a", `"moode":"Shadow"`)},
		"document 2: spec.mode: unsupported":      {filed("a"), filed("b", `"mode":"x"`)},
		"document 2: metadata.name: duplicate":    {filed("a"), filed("a")},
		"document 1: metadata.name: invalid":      {filed("A")},
		"document 1: spec: required":              {"{apiVersion: extension.portico.dev/v1, kind: AdmissionService, metadata: {name: a}}"},
		"matchConditions[0].expression: invalid":  {filed("a", `"matchConditions":[{"name":"a","expression":"object."}]`)},
		"spec.canaryPercent: required":            {filed("a", `"mode":"Canary"`)},
		"spec.endpoint.addresses[1]: duplicate":   {filed("a", `"endpoint":{"addresses":["a:1","a:1"]}`)},
		"spec.trust.caBundle: invalid":            {filed("a", `"trust":{"caBundle":"bm9uZQ=="}`)},
		"spec.rules: required value":              {filed("a", `"rules":[]`)},
		"did not find expected":                   {"{"},
		"cannot unmarshal string into Go struct ": {filed("a", `"order":"first"`)},
	} {
		write(documents...)
		if _, err := start(t, c, "--admission-services-file="+path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	if _, err := start(t, c, "--admission-services-file="+path+".none"); err == nil {
		t.Error("a file that does not exist is accepted")
	}
	write(filed("first"))
	a := started(t, c, "--admission-services-file="+path)
	refused := func() bool { _, err := a.Validate(t.Context(), named("c")); return err != nil }
	if !refused() {
		t.Error("the service was not asked")
	}
	write("nonsense")
	<-time.After(1500 * time.Millisecond) // longer than the interval of the reader
	if !refused() {
		t.Error("a wrong file was used")
	}
	write(filed("first", `"mode":"Shadow"`))
	until(t, "the new file is used", func() bool { return !refused() })
	write("")
	until(t, "no service is asked", func() bool { d.requests(); return !refused() && len(d.requests()) == 0 })
}
