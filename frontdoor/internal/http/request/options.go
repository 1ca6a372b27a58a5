package request

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-platform/portico/services"
)

// invalidOptions returns the Invalid error (422) for the parameters of a request, with an
// options kind of the meta group.
func (r *Request) invalidOptions(kind string, causes []services.StatusCause) *services.Status {
	return services.Invalid(r.Engine.MetaGroup(), kind, "", causes)
}

// Timeout returns the client's timeout, limited to most, which is also the default. It
// returns BadRequest (400) if the parameter is not a duration.
func (r *Request) Timeout(most time.Duration) (time.Duration, error) {
	given := r.Query.Get("timeout")
	if given == "" {
		return most, nil
	}
	timeout, err := time.ParseDuration(given)
	switch {
	case err != nil:
		return 0, services.BadRequest("invalid timeout specified in the request URL - %v", err)
	case timeout <= 0:
		return most, nil
	}
	return min(timeout, most), nil
}

// OptionsKind returns the options kind for the parameters of a write.
func (r *Request) OptionsKind() string {
	switch r.Verb {
	case "create":
		return "CreateOptions"
	case "update":
		return "UpdateOptions"
	case "patch":
		return "PatchOptions"
	}
	return "DeleteOptions"
}

// QueryDeleteOptions sets options from the query parameters of a deletion without a body.
func QueryDeleteOptions(q url.Values, o *metav1.DeleteOptions) error {
	if q.Has("gracePeriodSeconds") {
		seconds, err := intOption(q, "gracePeriodSeconds")
		if err != nil {
			return err
		}
		o.GracePeriodSeconds = &seconds
	}
	if q.Has("propagationPolicy") {
		policy := metav1.DeletionPropagation(q.Get("propagationPolicy"))
		o.PropagationPolicy = &policy
	}
	if q.Has("orphanDependents") {
		orphan := BoolOption(q, "orphanDependents")
		o.OrphanDependents = &orphan //nolint:staticcheck // clients of 1.21 still send it
	}
	if uid := types.UID(q.Get("uid")); uid != "" {
		o.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	return nil
}

// CheckDeleteOptions returns Invalid (422) for delete options that contradict each other
// or have unknown values.
func (r *Request) CheckDeleteOptions(o *metav1.DeleteOptions) error {
	const field = "propagationPolicy"
	var causes []services.StatusCause
	if policy := o.PropagationPolicy; policy != nil {
		if o.OrphanDependents != nil { //nolint:staticcheck // clients of 1.21 still send it
			causes = append(causes, services.StatusCause{Reason: services.CauseInvalid, Field: field,
				Message: "Invalid value: " + strconv.Quote(string(*policy)) + ": orphanDependents and deletionPropagation cannot be both set"})
		}
		switch *policy {
		case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		default:
			causes = append(causes, notSupported(field, strconv.Quote(string(*policy)), string(metav1.DeletePropagationForeground),
				string(metav1.DeletePropagationBackground), string(metav1.DeletePropagationOrphan), "nil"))
		}
	}
	if causes = append(causes, dryRunCauses(o.DryRun)...); len(causes) > 0 {
		return r.invalidOptions("DeleteOptions", causes)
	}
	return nil
}

func forbidden(field, why string) services.StatusCause {
	return services.StatusCause{Reason: services.CauseForbidden, Field: field, Message: "Forbidden: " + why}
}

// notSupported lists the allowed values of a parameter. It shows value unquoted.
func notSupported(field, value string, supported ...string) services.StatusCause {
	quoted := make([]string, len(supported))
	for i, s := range supported {
		quoted[i] = strconv.Quote(s)
	}
	return services.StatusCause{Reason: services.CauseNotSupported, Field: field,
		Message: "Unsupported value: " + value + ": supported values: " + strings.Join(quoted, ", ")}
}
