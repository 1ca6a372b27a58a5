package certificates

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

// showRequestCondition returns a summary of the status.
func showRequestCondition(o *cell.Object) any {
	is := func(kind string) bool { return cell.Condition(o.Status.Get("conditions"), kind).Exists() }
	var words []string
	switch {
	case is("Denied"):
		words = append(words, "Denied")
	case is("Approved"):
		words = append(words, "Approved")
	default:
		words = append(words, "Pending")
	}
	if is("Failed") {
		words = append(words, "Failed")
	}
	if o.Status.Get("certificate").Text() != "" {
		words = append(words, "Issued")
	}
	return strings.Join(words, ",")
}

// showPodRequestState returns how the request for a pod ended; Pending if it has not.
func showPodRequestState(o *cell.Object) any {
	for _, kind := range [...]string{"Issued", "Denied", "Failed"} {
		if cell.Condition(o.Status.Get("conditions"), kind).Exists() {
			return kind
		}
	}
	return "Pending"
}

// showRequestedDuration returns for how long a certificate shall be valid.
func showRequestedDuration(o *cell.Object) any {
	seconds := o.Spec.Get("expirationSeconds")
	if !seconds.Exists() {
		return "<none>"
	}
	return duration.HumanDuration(time.Duration(seconds.Int()) * time.Second)
}
