// Package namespaces finds the namespaces that requests name, for the plugins that need
// them. It only reads; plugins decide. It serves section "Admission plugins" of the
// specification.
package namespaces

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Type is the resource type of namespaces.
var Type = resource.GroupResource{Resource: "namespaces"}

// Namespace is the part of a stored namespace that admission reads.
type Namespace struct {
	Terminating bool
	Labels      map[string]string
	// Annotations are those that plugins read.
	Annotations map[string]string
}

// The annotations of a namespace that plugins read, without their domain.
const (
	NodeSelector         = "node-selector"
	DefaultTolerations   = "defaultTolerations"
	TolerationsWhitelist = "tolerationsWhitelist"
)

// Annotation returns an annotation of a namespace by its name without the domain; false
// when the namespace does not have it.
func (n Namespace) Annotation(name string) (string, bool) {
	value, ok := n.Annotations[name]
	return value, ok
}

// Parser returns a parser of stored namespaces.
func Parser(v vocabulary.Vocabulary) func(services.Object) (Namespace, error) {
	return func(o services.Object) (Namespace, error) {
		var stored struct {
			Metadata struct {
				DeletionTimestamp *string           `json:"deletionTimestamp"`
				Labels            map[string]string `json:"labels"`
				Annotations       map[string]string `json:"annotations"`
			} `json:"metadata"`
			Status struct {
				Phase string `json:"phase"`
			} `json:"status"`
		}
		err := json.Unmarshal(o.JSON, &stored)
		n := Namespace{Terminating: stored.Metadata.DeletionTimestamp != nil || stored.Status.Phase == "Terminating", Labels: stored.Metadata.Labels}
		for _, name := range []string{NodeSelector, DefaultTolerations, TolerationsWhitelist} {
			value, ok := stored.Metadata.Annotations[v.Qualified("scheduler.alpha", name)]
			if !ok {
				continue
			}
			if n.Annotations == nil {
				n.Annotations = map[string]string{}
			}
			n.Annotations[name] = value
		}
		return n, err
	}
}

// Known finds namespaces. Their mirror may be a moment behind.
type Known struct {
	Mirror review.Collection[Namespace]
	Store  services.Reader
	Parse  func(services.Object) (Namespace, error)
}

// Get returns a namespace as the mirror has it, or as it is when the mirror has none. The
// error of a missing one is NotFound.
func (k Known) Get(ctx context.Context, name string) (Namespace, error) {
	if known, ok := k.Mirror.Get("", name); ok {
		return known, nil
	}
	return k.Read(ctx, name)
}

// Read returns a namespace as it is now.
func (k Known) Read(ctx context.Context, name string) (Namespace, error) {
	stored, err := k.Store.Get(ctx, services.GetRequest{Key: resource.Key{GroupResource: Type, Name: name}})
	if err != nil {
		return Namespace{}, err
	}
	now, err := k.Parse(stored)
	if err != nil {
		return now, fmt.Errorf("reading namespace %q: %w", name, err)
	}
	return now, nil
}

// Labels returns the labels of a namespace.
func (k Known) Labels(ctx context.Context, name string) (map[string]string, error) {
	known, err := k.Get(ctx, name)
	return known.Labels, err
}
