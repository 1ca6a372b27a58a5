package admissionreview

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzReply checks responses of webhooks: only a response to this request is accepted.
// Patches have fuzz targets of their own.
func FuzzReply(f *testing.F) {
	question := &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.platform.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{UID: "u1"}}
	f.Fuzz(func(t *testing.T, answer []byte) {
		var reply admissionv1.AdmissionReview
		if json.Unmarshal(answer, &reply) != nil || checkReply(question, &reply, false) != nil {
			return
		}
		if reply.Response.UID != "u1" {
			t.Errorf("an answer to %q is accepted", reply.Response.UID)
		}
		if (len(reply.Response.Patch) > 0) != (reply.Response.PatchType != nil) {
			t.Errorf("half a patch is accepted: %s", answer)
		}
	})
}
