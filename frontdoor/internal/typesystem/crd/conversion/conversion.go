// Package conversion asks the webhooks of custom types what their objects are in
// another version. It decides which version of ConversionReview a webhook is asked
// in, and whether its answer is valid: a webhook may change everything about
// an object but what it is and who it is, so that of its metadata only labels and
// annotations count. It never defaults, drops or validates fields. It serves
// "Deprecation rules" and "Removals" of the specification, for custom types.
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
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

const (
	// within bounds how long a webhook may take: a read waits for it.
	within = 30 * time.Second
	// mostAnswered is the longest answer that is read; a page of a list goes at once.
	mostAnswered = 256 << 20
)

// Speaks reports whether a version of ConversionReview is understood here.
func Speaks(version string) bool { return version == "v1" || version == "v1beta1" }

// Webhook is the conversion webhook of one definition.
type Webhook struct {
	client *webhook.Client
	// reviews is the group version that it is asked in; empty when it understands
	// none of ours.
	reviews string
}

// New returns a webhook that is at a place and understands these versions of
// ConversionReview, the ones that it likes best first.
func New(at webhook.Config, versions []string, find webhook.Resolver, v vocabulary.Vocabulary) *Webhook {
	w := &Webhook{client: webhook.New(at, find, "portico-frontdoor")}
	if i := slices.IndexFunc(versions, Speaks); i >= 0 {
		w.reviews = v.Group("apiextensions.") + "/" + versions[i]
	}
	return w
}

// review is a ConversionReview, in any version.
type review struct {
	Kind       string    `json:"kind"`
	APIVersion string    `json:"apiVersion"`
	Request    *question `json:"request,omitempty"`
	Response   *answer   `json:"response,omitempty"`
}

type question struct {
	UID               string           `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

type answer struct {
	UID              string   `json:"uid"`
	ConvertedObjects []object `json:"convertedObjects"`
	Result           struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	} `json:"result"`
}

// Convert returns the objects in that version; those that are in it already are not
// sent. An error is a Status (500), as there is no version of the objects to show.
func (w *Webhook) Convert(ctx context.Context, objects []map[string]any, apiVersion string) ([]map[string]any, error) {
	converted := slices.Clone(objects)
	var wanting []int
	q := question{UID: string(uuid.NewUUID()), DesiredAPIVersion: apiVersion}
	for i, o := range objects {
		if o["apiVersion"] != apiVersion {
			wanting, q.Objects = append(wanting, i), append(q.Objects, o)
		}
	}
	if len(wanting) == 0 {
		return converted, nil
	}
	found, err := w.ask(ctx, q)
	if err != nil {
		return nil, failed(q, "failed: %v", err)
	}
	if len(found) != len(wanting) {
		return nil, failed(q, "returned %d objects, expected %d", len(found), len(wanting))
	}
	for i, at := range wanting {
		if err := checkReply(q.Objects[i], found[i], apiVersion); err != nil {
			return nil, failed(q, "returned invalid object at index %d: %v", i, err)
		}
		if converted[at], err = withMetadata(found[i], q.Objects[i]); err != nil {
			return nil, failed(q, "returned invalid metadata in object at index %d: %v", i, err)
		}
	}
	return converted, nil
}

// failed is the error of a question.
func failed(q question, format string, args ...any) *services.Status {
	first := q.Objects[0]
	return &services.Status{Code: http.StatusInternalServerError,
		Message: fmt.Sprintf("conversion webhook for %v, Kind=%v ", first["apiVersion"], first["kind"]) + fmt.Sprintf(format, args...)}
}

// ask sends the question and returns the objects of the answer.
func (w *Webhook) ask(ctx context.Context, q question) ([]object, error) {
	if w.reviews == "" {
		return nil, errors.New("it understands neither v1 nor v1beta1 of ConversionReview")
	}
	sent := review{Kind: "ConversionReview", APIVersion: w.reviews, Request: &q}
	var reply review
	if err := w.client.Post(ctx, sent, &reply, webhook.Limits{Timeout: within, Bytes: mostAnswered}); err != nil {
		return nil, err
	}
	return reply.objects(sent)
}

// objects returns what the reply to a review holds. Webhooks of v1beta1 need name
// neither it nor themselves.
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
