// Package conversion calls the conversion webhooks of custom types. It decides which
// version of ConversionReview is sent, and whether the response is valid: a webhook may
// change everything except the kind and the identity of an object, so labels and
// annotations are the only metadata taken from the response. It never defaults, drops or
// validates fields. It serves "Deprecation rules" and "Removals" of the specification, for
// custom types.
package conversion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

const (
	// timeout bounds one call: a read waits for it.
	timeout = 30 * time.Second
)

// Supports reports whether this package supports a version of ConversionReview.
func Supports(version string) bool { return version == "v1" || version == "v1beta1" }

// Webhook is the conversion webhook of one definition.
type Webhook struct {
	client *webhook.Client
	// reviews is the apiVersion of the ConversionReviews that are sent; "" if the webhook
	// accepts no supported version.
	reviews string
}

// New returns the webhook at an address. versions are the versions of ConversionReview that
// it accepts, preferred ones first.
func New(at webhook.Config, versions []string, clients *webhook.Clients, v vocabulary.Vocabulary) *Webhook {
	w := &Webhook{client: clients.New(at)}
	if i := slices.IndexFunc(versions, Supports); i >= 0 {
		w.reviews = v.Group("apiextensions.") + "/" + versions[i]
	}
	return w
}

// review is a ConversionReview, in any version.
type review struct {
	Kind       string          `json:"kind"`
	APIVersion string          `json:"apiVersion"`
	Request    *reviewRequest  `json:"request,omitempty"`
	Response   *reviewResponse `json:"response,omitempty"`
}

type reviewRequest struct {
	UID               string           `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

type reviewResponse struct {
	UID              string   `json:"uid"`
	ConvertedObjects []object `json:"convertedObjects"`
	Result           struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	} `json:"result"`
}

// Convert returns the objects in that version, in the same order; objects that are in it
// already are not sent. An error is a Status (500), because the objects cannot be served in
// that version.
func (w *Webhook) Convert(ctx context.Context, objects []map[string]any, apiVersion string) ([]map[string]any, error) {
	converted := slices.Clone(objects)
	var indices []int
	q := reviewRequest{UID: string(uuid.NewUUID()), DesiredAPIVersion: apiVersion}
	for i, o := range objects {
		if o["apiVersion"] != apiVersion {
			indices, q.Objects = append(indices, i), append(q.Objects, o)
		}
	}
	if len(indices) == 0 {
		return converted, nil
	}
	found, err := w.call(ctx, q)
	if err != nil {
		return nil, failed(q, "failed: %v", err)
	}
	if len(found) != len(indices) {
		return nil, failed(q, "returned %d objects, expected %d", len(found), len(indices))
	}
	for i, at := range indices {
		if err := checkReply(q.Objects[i], found[i], apiVersion); err != nil {
			return nil, failed(q, "returned invalid object at index %d: %v", i, err)
		}
		if converted[at], err = withMetadata(found[i], q.Objects[i]); err != nil {
			return nil, failed(q, "returned invalid metadata in object at index %d: %v", i, err)
		}
	}
	return converted, nil
}

// failed returns the error of a request.
func failed(q reviewRequest, format string, args ...any) *services.Status {
	first := q.Objects[0]
	return &services.Status{Code: http.StatusInternalServerError,
		Message: fmt.Sprintf("conversion webhook for %v, Kind=%v ", first["apiVersion"], first["kind"]) + fmt.Sprintf(format, args...)}
}

// call sends a request and returns the objects of the response.
func (w *Webhook) call(ctx context.Context, q reviewRequest) ([]object, error) {
	if w.reviews == "" {
		return nil, errors.New("it understands neither v1 nor v1beta1 of ConversionReview")
	}
	sent := review{Kind: "ConversionReview", APIVersion: w.reviews, Request: &q}
	var reply review
	ctx, span := tracing.StartCall(ctx, "webhook", "convert")
	err := w.client.Post(ctx, sent, &reply, webhook.Limits{Timeout: timeout, Converts: true})
	span.End(err)
	if err != nil {
		return nil, err
	}
	return reply.objects(sent)
}

// objects returns the objects of the response to a review. A response in v1beta1 may lack
// apiVersion and kind; its uid is not checked then.
func (r review) objects(to review) ([]object, error) {
	strict := r.APIVersion != "" || to.APIVersion[len(to.APIVersion)-2:] == "v1"
	switch a := r.Response; {
	case strict && (r.APIVersion != to.APIVersion || r.Kind != to.Kind):
		return nil, fmt.Errorf("expected webhook response of %s, Kind=%s, got %s, Kind=%s", to.APIVersion, to.Kind, r.APIVersion, r.Kind)
	case a == nil:
		return nil, errors.New("no response provided")
	case strict && a.UID != to.Request.UID:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", to.Request.UID, a.UID)
	case a.Result.Status == "Success":
		return a.ConvertedObjects, nil
	case a.Result.Message != "":
		return nil, errors.New(a.Result.Message)
	default:
		return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", a.Result.Status)
	}
}

var _ interface {
	Convert(context.Context, []map[string]any, string) ([]map[string]any, error)
} = (*Webhook)(nil)
