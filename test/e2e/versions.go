package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// twoVersions uses the same objects in a version that is on its way out and in its
// successor.
func twoVersions(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	jobs := func(version string) string { return s.in("batch/"+version, "cronjobs") }
	made := s.do(s.created, "POST "+jobs("v1beta1"), `{"apiVersion":"batch/v1beta1","kind":"CronJob","metadata":{"name":"a"},"spec":{"schedule":"0 3 * * *",
		"jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}}}}}`)
	deprecated(t, made.Answer, "batch/v1beta1 CronJob", "v1.21+", "v1.25+")
	newer := s.do(http.StatusOK, "GET "+jobs("v1")+"/a", "")
	if newer.GetAPIVersion() != "batch/v1" || newer.GetUID() != made.GetUID() || newer.GetResourceVersion() != made.GetResourceVersion() || newer.Header.Get("Warning") != "" {
		t.Errorf("the successor, with the warning %q: %s", newer.Header.Get("Warning"), newer.Body)
	}
	s.do(http.StatusOK, "PATCH "+jobs("v1")+"/a", `{"spec":{"schedule":"0 4 * * *"}}`)
	older := s.do(http.StatusOK, "PATCH "+jobs("v1beta1")+"/a", `{"metadata":{"labels":{"a":"b"}}}`)
	if older.GetAPIVersion() != "batch/v1beta1" || older.at("spec", "schedule") != "0 4 * * *" {
		t.Errorf("the older version of a change: %s", older.Body)
	}
	list := s.do(http.StatusOK, "GET "+jobs("v1beta1"), "")
	deprecated(t, list.Answer, "batch/v1beta1 CronJob", "batch/v1 CronJob")
	if list.GetKind() != "CronJobList" || !strings.Contains(list.Body, older.GetResourceVersion()) {
		t.Errorf("the list: %s", list.Body)
	}
	s.do(http.StatusBadRequest, "PUT "+jobs("v1")+"/a", older.Body)
	metric := c.Ask(t, cluster.Request{Path: "/metrics"})
	if want := `apiserver_requested_deprecated_apis{group="batch",removed_release="1.25",resource="cronjobs",subresource="",version="v1beta1"} 1`; !strings.Contains(metric.Body, want) {
		t.Errorf("the metrics lack %s", want)
	}
	convertedIngress(s)
}

// convertedIngress uses a type whose fields have moved between its versions.
func convertedIngress(s scene) {
	group := s.c.Vocabulary.Group("networking.")
	for _, old := range []string{group, "extensions"} {
		name := strings.TrimSuffix(strings.Split(old, ".")[0], "s")
		made := s.do(s.created, "POST "+s.in(old+"/v1beta1", "ingresses"), fmt.Sprintf(`{"apiVersion":"%s/v1beta1","kind":"Ingress","metadata":{"name":%q},
			"spec":{"backend":{"serviceName":"web","servicePort":80}}}`, old, name))
		deprecated(s.t, made.Answer, old+"/v1beta1 Ingress", "v1.22+", group+"/v1 Ingress")
		newer := s.do(http.StatusOK, "GET "+s.in(group+"/v1", "ingresses/"+name), "")
		if newer.at("spec", "defaultBackend", "service", "name") != "web" || newer.at("spec", "defaultBackend", "service", "port", "number") != "80" || newer.at("spec", "backend") != "<nil>" {
			s.t.Errorf("the successor: %s", newer.Body)
		}
		s.do(http.StatusOK, "PATCH "+s.in(group+"/v1", "ingresses/"+name), `{"spec":{"defaultBackend":{"service":{"port":{"number":null,"name":"http"}}}}}`)
		if older := s.do(http.StatusOK, "GET "+s.in(old+"/v1beta1", "ingresses/"+name), ""); older.at("spec", "backend", "servicePort") != "http" {
			s.t.Errorf("the older version of a change: %s", older.Body)
		}
	}
}

// deprecated checks that the response has a warning.
func deprecated(t *testing.T, answer cluster.Answer, texts ...string) {
	t.Helper()
	warning := answer.Header.Get("Warning")
	for _, text := range append(texts, "299 - ", "deprecated") {
		if !strings.Contains(warning, text) {
			t.Errorf("the warning %q does not name %q", warning, text)
		}
	}
}

// newEvents creates events as their newer version wants them.
func newEvents(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	version := c.Vocabulary.Group("events.") + "/v1"
	path := s.in(version, "events")
	whole := map[string]string{
		"action": `"Starting"`, "reason": `"Started"`, "type": `"Normal"`, "eventTime": `"2024-01-02T03:04:05.678901Z"`,
		"reportingController": `"example.com/tester"`, "reportingInstance": `"tester-1"`, "note": `"hello"`,
		"regarding": `{"apiVersion":"v1","kind":"ConfigMap","name":"a","namespace":"` + s.namespace + `"}`,
	}
	event := func(name, field, value string) string {
		text := `{"apiVersion":"` + version + `","kind":"Event","metadata":{"name":"` + name + `"}`
		for f, v := range whole {
			if f != field {
				text += `,"` + f + `":` + v
			}
		}
		if value != "" {
			text += `,"` + field + `":` + value
		}
		return text + `}`
	}
	s.do(s.created, "POST "+path, event("whole", "", ""))
	core := map[string]string{"deprecatedCount": "count", "deprecatedFirstTimestamp": "firstTimestamp",
		"deprecatedLastTimestamp": "lastTimestamp", "deprecatedSource": "source"} // errors have the older names
	for field, value := range map[string]string{
		"action": "", "reason": "", "reportingController": "", "reportingInstance": "", "eventTime": "", "type": `"Loud"`,
		"deprecatedCount": "3", "deprecatedFirstTimestamp": `"2024-01-02T03:04:05Z"`, "deprecatedLastTimestamp": `"2024-01-02T03:04:05Z"`,
		"deprecatedSource": `{"component":"a"}`,
	} {
		answer := c.Ask(t, cluster.Request{Method: http.MethodPost, Path: path, Body: event("broken", field, value)})
		if answer.Code != http.StatusUnprocessableEntity || !strings.Contains(answer.Body, `"field":"`+cmp.Or(core[field], field)+`"`) {
			t.Errorf("with %s: %q: %d %.300s", field, value, answer.Code, answer.Body)
		}
	}
	older := s.do(http.StatusOK, "GET "+s.in("v1", "events/whole"), "")
	if older.at("involvedObject", "name") != "a" || older.at("message") != "hello" || older.at("reportingComponent") != "example.com/tester" {
		t.Errorf("the older version: %s", older.Body)
	}
}
