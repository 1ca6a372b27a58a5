package delegate

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services/admissionservice"
)

// enforces reports whether the answers of a service count for a request. With mode Canary
// that depends on the object and on nothing else, so that an object is always treated in
// the same way.
func (s *Service) enforces(r *review.Review) bool {
	switch s.Spec.Mode {
	case admissionservice.Shadow:
		return false
	case admissionservice.Canary:
		return place(s.Name, r) < uint64(*s.Spec.CanaryPercent)
	}
	return true
}

// place returns the place of an object among all, from 0 to 99. Each service has an order
// of its own. Of several groups that serve the object, the first in order counts.
func place(service string, r *review.Review) uint64 {
	group := r.Group
	for _, served := range r.Served {
		group = min(group, served.Group)
	}
	hash := sha256.Sum256([]byte(strings.Join([]string{service, group, r.Resource, r.Namespace, nameOf(r)}, "\x00")))
	return binary.BigEndian.Uint64(hash[:]) % 100
}

// nameOf returns the name of the object of a review, or its UID if it has no name yet.
func nameOf(r *review.Review) string {
	if r.Name != "" {
		return r.Name
	}
	for _, object := range [][]byte{r.Object, r.OldObject} {
		var o struct {
			Metadata struct {
				Name string `json:"name"`
				UID  string `json:"uid"`
			} `json:"metadata"`
		}
		if len(object) > 0 && json.Unmarshal(object, &o) == nil {
			return cmp.Or(o.Metadata.Name, o.Metadata.UID)
		}
	}
	return ""
}
