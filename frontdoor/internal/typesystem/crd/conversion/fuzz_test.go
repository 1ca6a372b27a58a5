package conversion

import (
	"encoding/json"
	"testing"
)

// FuzzReply decodes arbitrary responses: an accepted object is in the requested version,
// and still the one that was sent.
func FuzzReply(f *testing.F) {
	sent := map[string]any{"apiVersion": "example.com/v1", "kind": "Site",
		"metadata": map[string]any{"name": "a", "namespace": "b", "uid": "u"}, "spec": map[string]any{"n": "1"}}
	request := review{Kind: "ConversionReview", APIVersion: "apiextensions.platform.io/v1", Request: &reviewRequest{UID: "u1"}}
	f.Fuzz(func(t *testing.T, answer []byte) {
		var reply review
		if json.Unmarshal(answer, &reply) != nil {
			return
		}
		objects, err := reply.objects(request)
		if err != nil {
			return
		}
		for _, found := range objects {
			if checkReply(sent, found, "example.com/v2") != nil {
				continue
			}
			if found["apiVersion"] != "example.com/v2" || found["kind"] != "Site" {
				t.Errorf("%s is accepted", answer)
			}
			merged, err := withMetadata(found, sent)
			if err == nil && metadata(merged)["uid"] != "u" {
				t.Errorf("%s changes the uid to %v", answer, metadata(merged)["uid"])
			}
		}
	})
}
