package rights

import (
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// WebhookVersions checks that a webhook for one version changes objects written in another: in
// separate processes, admission has them converted by the front door.
func WebhookVersions(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	remote := s.serveWebhook()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: remote.Certificate().Raw}))
	s.do(c, "PATCH /api/v1/namespaces/$id", `{"metadata":{"labels":{"versions":"$id"}}}`, 0)
	for _, kind := range []string{"Mutating", "Validating"} {
		path := "/apis/$admission/v1/" + strings.ToLower(kind) + "webhookconfigurations"
		s.Cleanup(func() { s.remove(path + "/$id") })
		s.do(c, "POST "+path, `{"apiVersion":"$admission/v1","kind":"`+kind+`WebhookConfiguration","metadata":{"name":"$id"},"webhooks":[{
			"name":"patch.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","timeoutSeconds":10,
			"clientConfig":{"url":"`+remote.URL+`/`+kind+`","caBundle":"`+ca+`"},"namespaceSelector":{"matchLabels":{"versions":"$id"}},
			"rules":[{"operations":["*"],"apiGroups":["policy"],"apiVersions":["v1"],"resources":["poddisruptionbudgets"],"scope":"Namespaced"}]}]}`, 0)
	}
	budget := func(patch string) string {
		return `{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"a",` + annotated(patch) + `},"spec":{"minAvailable":1}}`
	}
	s.await("the webhook changes a budget in v1", func() bool {
		answer := s.admin.Ask(s.T, cluster.Request{Method: "POST", Path: s.names.Replace("/apis/policy/v1beta1/namespaces/$id/poddisruptionbudgets?dryRun=All"),
			Body: budget(`[{"op":"test","path":"/apiVersion","value":"policy/v1"},{"op":"replace","path":"/spec/minAvailable","value":7}]`)})
		return answer.Code/100 == 2 && strings.Contains(answer.Body, `"minAvailable":7`) && strings.Contains(answer.Body, `"policy/v1beta1"`)
	})
	s.do(c, "POST /apis/policy/v1beta1/namespaces/$id/poddisruptionbudgets", budget(`[{"op":"replace","path":"/apiVersion","value":"v1"}]`), 500)
}
