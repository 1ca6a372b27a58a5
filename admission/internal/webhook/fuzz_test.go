package webhook

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzReply reads what webhooks answer: only an answer to this very question counts,
// and its patch leaves an object that is JSON and no larger than it could be.
func FuzzReply(f *testing.F) {
	question := &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.platform.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{UID: "u1"}}
	object := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"x":"y"}},"data":{"a":"b"}}`)
	f.Fuzz(func(t *testing.T, answer []byte) {
		var reply admissionv1.AdmissionReview
		if json.Unmarshal(answer, &reply) != nil || believable(question, &reply) != nil {
			return
		}
		if reply.Response.UID != "u1" {
			t.Errorf("an answer to %q is believed", reply.Response.UID)
		}
		after, err := patched(object, reply.Response.Patch)
		if err == nil && !json.Valid(after) {
			t.Errorf("the patch %s leaves %s", reply.Response.Patch, after)
		}
	})
}

// FuzzPatched applies patches directly.
func FuzzPatched(f *testing.F) {
	f.Fuzz(func(t *testing.T, object, patch []byte) {
		if len(object) > 1<<14 || len(patch) > 1<<14 || !json.Valid(object) {
			return
		}
		after, err := patched(object, patch)
		if err != nil {
			return
		}
		var o map[string]any
		if json.Unmarshal(after, &o) != nil || o == nil {
			t.Errorf("%s of %s leaves %s", patch, object, after)
		}
		if len(after) > 8<<20 {
			t.Errorf("%d bytes and a patch of %d make %d", len(object), len(patch), len(after))
		}
	})
}
