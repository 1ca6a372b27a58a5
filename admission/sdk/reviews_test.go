package sdk_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/portico-platform/portico/admission/sdk"
)

// answered is an HTTP response.
type answered struct {
	code int
	text string
}

// post sends a body over HTTPS, from a caller without a certificate.
func (p *site) post(t *testing.T, path, media, body string) answered {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust(t, p.authority, nil), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	response, err := client.Post("https://"+p.ReviewAddress+path, media, strings.NewReader(body))
	if err != nil {
		return answered{0, err.Error()}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{response.StatusCode, string(text)}
}

const request = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7","operation":"CREATE",
	"kind":{"group":"","version":"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},"name":"a",
	"userInfo":{"username":"jane","extra":{"x":["y"]}},"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"color":"COLOR"}},
	"oldObject":null,"dryRun":true,"options":{"kind":"CreateOptions"},"requestKind":{"kind":"ConfigMap"},"unknown":1}}`

func TestAdmissionReviews(t *testing.T) {
	p := newSite(t, colors(), nil)
	of := func(color string) string { return strings.Replace(request, "COLOR", color, 1) }
	for name, x := range map[string]struct {
		path, media, body string
		code              int
		want              string
	}{
		"admitted":  {"/validate", "application/json; charset=utf-8", of("blue"), 200, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"7","allowed":true}}`},
		"neutral":   {"/validate", "application/json", strings.Replace(of("blue"), "k8s.io/v1", "platform.io/v1beta1", 1), 200, `{"apiVersion":"admission.platform.io/v1beta1","kind":"AdmissionReview","response":{"uid":"7","allowed":true}}`},
		"patched":   {"/mutate", "application/json", of("navy"), 200, `"allowed":true,"patch":"W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9kYXRhL2NvbG9yIiwidmFsdWUiOiJibHVlIn1d","patchType":"JSONPatch","warnings":["navy becomes blue"]`},
		"refused":   {"/validate", "application/json", of("red"), 200, `"allowed":false,"status":{"status":"Failure","code":422,"reason":"Invalid","message":"ConfigMap \"a\" is invalid: data.color: Invalid value: \"red\" is not allowed","details":{"name":"a","kind":"ConfigMap","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"red\" is not allowed","field":"data.color"}]}},"auditAnnotations":{"color":"red"}`},
		"failed":    {"/validate", "application/json", of("broken"), 500, "Internal error occurred: the database is away"},
		"panicked":  {"/validate", "application/json", of("panic"), 500, "the admission service panicked"},
		"too late":  {"/validate?timeout=1ms", "application/json", of("slow"), 504, "has not decided in time"},
		"timeout":   {"/validate?timeout=soon", "application/json", of("blue"), 400, `"soon" is not a positive duration`},
		"elsewhere": {"/other", "application/json", of("blue"), 404, ""},
		"media":     {"/validate", "text/plain", of("blue"), 415, "application/json is required"},
		"no JSON":   {"/validate", "application/json", "{", 400, "not an AdmissionReview"},
		"no kind":   {"/validate", "application/json", "{}", 400, `"" of "" is not an AdmissionReview`},
		"v2":        {"/validate", "application/json", strings.Replace(of("blue"), "/v1", "/v2", 1), 400, "is not an AdmissionReview of v1"},
		"no review": {"/validate", "application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400, "request is missing"},
		"no uid":    {"/validate", "application/json", strings.Replace(of("blue"), `"uid":"7",`, "", 1), 400, "request.uid is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			got := p.post(t, x.path, x.media, x.body)
			if got.code != x.code || !strings.Contains(got.text, x.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAReviewHasTheRequest(t *testing.T) {
	seen := make(chan sdk.Request, 1)
	p := newSite(t, sdk.Service{Name: "spy", Mutate: func(_ context.Context, r *sdk.Review) error {
		seen <- r.AdmissionRequest
		return nil
	}}, nil)
	if got := p.post(t, "/mutate", "application/json", request); got.code != 200 {
		t.Fatal(got)
	}
	got := <-seen
	if got.UID != "7" || got.Operation != sdk.Create || got.Resource != "configmaps" || got.Version != "v1" || got.Kind != "ConfigMap" || got.KindVersion != "" ||
		got.Name != "a" || got.User.Name != "jane" || got.User.Extra["x"][0] != "y" || got.OldObject != nil || !json.Valid(got.Object) || !got.DryRun || got.Options == nil {
		t.Errorf("%+v", got)
	}
	namespace := strings.NewReplacer(`"configmaps"},"name":"a"`, `"namespaces"},"name":"a","namespace":"a"`, `"version":"v1","kind":"ConfigMap"`, `"version":"v2","kind":"Other"`).Replace(request)
	if got := p.post(t, "/mutate", "application/json", namespace); got.code != 200 {
		t.Fatal(got)
	}
	if got = <-seen; got.Namespace != "" || got.KindVersion != "v2" || got.Kind != "Other" {
		t.Errorf("%+v", got)
	}
}

func TestReviewsMayRequireACertificate(t *testing.T) {
	p := newSite(t, colors(), func(o *sdk.Options) { o.ReviewClientCAFile = o.ClientCAFile })
	if got := p.post(t, "/validate", "application/json", request); got.code != 0 {
		t.Errorf("a caller without a certificate gets %+v", got)
	}
}
