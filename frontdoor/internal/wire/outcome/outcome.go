// Package outcome makes the Status object of a response from a services.Status. It encodes nothing and decides
// nothing about it. It serves "Errors" and "Chunked lists" of the specification.
package outcome

import (
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-platform/portico/services"
)

// Continued is the error of a list that has expired, with a token that continues the list.
type Continued struct {
	*services.Status
	Token string
}

// Unwrap returns the Status, so that services.AsStatus finds it.
func (c *Continued) Unwrap() error { return c.Status }

// Of returns the Status object of an error, or of a services.Status that is a success. A Success has a
// code only if it is 201.
func Of(err error) *metav1.Status {
	s := services.AsStatus(err)
	o := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Message:  s.Message, Reason: metav1.StatusReason(s.Reason),
	}
	var continued *Continued
	if errors.As(err, &continued) {
		o.Continue = continued.Token
	}
	switch {
	case s.Code >= http.StatusBadRequest:
		o.Status, o.Code = metav1.StatusFailure, s.Code
	case s.Code == http.StatusCreated:
		o.Code = s.Code
	}
	if d := s.Details; d != nil {
		o.Details = &metav1.StatusDetails{Name: d.Name, Group: d.Group, Kind: d.Kind,
			UID: types.UID(d.UID), RetryAfterSeconds: d.RetryAfterSeconds}
		for _, cause := range d.Causes {
			o.Details.Causes = append(o.Details.Causes, metav1.StatusCause{
				Type: metav1.CauseType(cause.Reason), Message: cause.Message, Field: cause.Field})
		}
	}
	return o
}
