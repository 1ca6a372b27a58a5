// Package emulation records in the store which releases have written its data, and finds
// the stored objects whose types the current release does not have. Such objects stay
// stored and no client can reach them. It serves "Persistence" of the specification.
package emulation

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Record is the record of a cluster's releases.
type Record struct {
	Store      services.Store
	Types      *catalogue.Catalogue
	Vocabulary vocabulary.Vocabulary
	Log        *slog.Logger
}

// key is that of the record, which the API does not serve.
var key = resource.Key{GroupResource: resource.GroupResource{Group: "portico", Resource: "releases"}, Name: "written"}

// stored is the stored form.
type stored struct {
	Metadata map[string]string `json:"metadata"`
	Releases []string          `json:"releases"`
}

// pause is the time between attempts to count hidden objects.
const pause = 5 * time.Second

// Keep adds the current release to the record. If others have written the data, it counts
// in the background the objects that only these can serve, and logs and exposes them.
func (r Record) Keep(ctx context.Context, n *run.Node) error {
	others, err := r.note(ctx)
	for services.IsReason(err, services.ReasonConflict) || services.IsReason(err, services.ReasonAlreadyExists) {
		others, err = r.note(ctx) // another front door has changed it at the same time
	}
	if err != nil {
		return err
	}
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "portico_hidden_objects",
		Help: "Stored objects, at the start, of types that other releases have and this one lacks."})
	if err := n.Metrics.Register(gauge); err != nil || len(others) == 0 {
		return err
	}
	n.Go("counting hidden objects", func(ctx context.Context) error {
		for {
			total, err := r.count(ctx, others)
			if gauge.Set(float64(total)); err == nil {
				return nil
			}
			r.Log.Warn("cannot count the hidden objects, retrying", "error", err)
			if !retry.Pause(ctx, pause) {
				return nil
			}
		}
	})
	return nil
}

func (r Record) note(ctx context.Context) ([]release.Release, error) {
	record := stored{Metadata: map[string]string{"name": key.Name}}
	object, err := r.Store.Get(ctx, services.GetRequest{Key: key})
	exists := err == nil
	if revision, bad := services.UnreadableRevision(err); bad { // what it said is lost, and nothing else
		r.Log.Error("the record of releases cannot be read and is replaced", "error", err)
		object.Revision, exists, err = revision, true, nil
	} else if exists {
		err = json.Unmarshal(object.JSON, &record)
	} else if services.IsReason(err, services.ReasonNotFound) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	current := r.Types.Release().String()
	var others []release.Release
	for _, name := range record.Releases {
		if other, err := release.Parse(name); err == nil && name != current {
			others = append(others, other)
		}
	}
	if slices.Contains(record.Releases, current) {
		return others, nil
	}
	record.Releases = append(record.Releases, current)
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	if exists {
		_, err = r.Store.Update(ctx, services.UpdateRequest{Key: key, Revision: object.Revision, Content: services.Content{JSON: raw}})
	} else {
		_, err = r.Store.Create(ctx, services.CreateRequest{Key: key, Content: services.Content{JSON: raw}})
	}
	return others, err
}

// count returns how many objects of types that only other releases have are stored, and
// logs these types.
func (r Record) count(ctx context.Context, others []release.Release) (total int64, err error) {
	seen := map[resource.GroupResource]bool{}
	for _, other := range others {
		types, err := catalogue.Resources(catalogue.Options{Vocabulary: r.Vocabulary, Release: other})
		if err != nil {
			return total, err
		}
		for _, gr := range types {
			if seen[gr] || r.Types.BuiltIn(gr.Group, gr.Resource) {
				continue
			}
			seen[gr] = true
			page, err := r.Store.List(ctx, services.ListRequest{GroupResource: gr, Limit: 1, WithUnreadable: true})
			if err != nil {
				return total, err
			}
			if n := int64(len(page.Objects)) + max(page.Remaining, 0); n > 0 {
				total += n
				r.Log.Warn("objects are hidden: this release does not have their type", "resource", gr.String(), "objects", n,
					"emulated", r.Types.Release(), "written", other)
			}
		}
	}
	return total, nil
}
