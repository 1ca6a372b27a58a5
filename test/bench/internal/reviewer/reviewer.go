// Package reviewer is the admission service of the benchmark, in the process of the load,
// and the objects that register it. It validates ConfigMaps and counts its reviews, so that a
// measurement can check that it was asked.
package reviewer

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/vocabulary"
)

// name is that of the registrations.
const name = "bench"

// Reviewer is a running admission service.
type Reviewer struct {
	reviews atomic.Int64
	server  *sdk.Server
	ca      []byte
	dir     string
	cancel  context.CancelFunc
	ended   chan error
}

// Start serves on free ports of this machine.
func Start() (*Reviewer, error) {
	dir, err := os.MkdirTemp("", "bench-reviewer-")
	if err != nil {
		return nil, err
	}
	r := &Reviewer{dir: dir, ended: make(chan error, 1)}
	o := sdk.DefaultOptions()
	o.Address, o.ReviewAddress, o.CertDir, o.Log = "127.0.0.1:0", "127.0.0.1:0", dir, slog.New(slog.DiscardHandler)
	if r.server, err = sdk.Listen(sdk.Service{Name: name, Validate: r.validate}, o); err != nil {
		return nil, err
	}
	if r.ca, err = os.ReadFile(filepath.Join(dir, "ca.crt")); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.ended <- r.server.Serve(ctx) }()
	return r, nil
}

// Stop ends the service.
func (r *Reviewer) Stop() {
	r.cancel()
	<-r.ended
	_ = os.RemoveAll(r.dir)
}

// Reviews returns how many reviews there were.
func (r *Reviewer) Reviews() int64 { return r.reviews.Load() }

// validate refuses ConfigMaps without data.
func (r *Reviewer) validate(_ context.Context, review *sdk.Review) error {
	r.reviews.Add(1)
	var c struct {
		Data map[string]string `json:"data"`
	}
	if err := review.Decode(&c); err != nil {
		return err
	}
	if len(c.Data) == 0 {
		return review.Forbid("it has no data")
	}
	return nil
}

// Registration is an object by which a server asks the reviewer.
type Registration struct {
	// Collection and Path are those of the object.
	Collection, Path string
	Body             []byte
}

// Register returns the registration as an admission service or as a webhook.
func (r *Reviewer) Register(service bool) (Registration, error) {
	if service {
		return r.service()
	}
	return r.webhook()
}

// webhook registers the reviewer as kube-apiserver does: AdmissionReview over HTTPS.
func (r *Reviewer) webhook() (Registration, error) {
	group := vocabulary.K8s().Group("admissionregistration.") + "/v1"
	return registration("/apis/"+group+"/validatingwebhookconfigurations", map[string]any{
		"apiVersion": group, "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": name},
		"webhooks": []any{map[string]any{
			"name": name + ".example.com", "admissionReviewVersions": []string{"v1"}, "sideEffects": "None", "failurePolicy": "Fail",
			"clientConfig": map[string]any{"url": "https://" + r.server.ReviewAddress + "/validate", "caBundle": r.ca},
			"rules":        rules(),
		}},
	})
}

// Services are the registrations of admission services, which kube-apiserver does not have.
const Services = "/apis/" + admissionservice.Group + "/" + admissionservice.Version + "/" + admissionservice.Resource

// service registers the reviewer as an admission service over gRPC.
func (r *Reviewer) service() (Registration, error) {
	return registration(Services, map[string]any{
		"apiVersion": admissionservice.Group + "/" + admissionservice.Version, "kind": admissionservice.Kind, "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"endpoint": map[string]any{"addresses": []string{r.server.Address}}, "trust": map[string]any{"caBundle": r.ca},
			"phase": admissionservice.Validate, "sideEffects": admissionservice.None, "rules": rules(),
		},
	})
}

func rules() []any {
	return []any{map[string]any{"operations": []string{"CREATE"}, "apiGroups": []string{""}, "apiVersions": []string{"v1"}, "resources": []string{"configmaps"}}}
}

func registration(collection string, object any) (Registration, error) {
	body, err := json.Marshal(object)
	return Registration{collection, collection + "/" + name, body}, err
}
