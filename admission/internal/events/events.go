// Package events limits the rate of events that are written: of all, and by namespace, by
// user, and by source and object. Each replica of admission counts by itself. Events are
// one resource type in two groups, and both count, so that no limit is passed by in the
// other group. It serves EventRateLimit under "Admission plugins" of the specification.
package events

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// maxKey is the limit on a key in a message, in bytes.
const maxKey = 512

// Plugin limits the rate of events.
type Plugin struct {
	enforcers []enforcer
	group     string // of the newer events
	now       func() time.Time
}

// New returns the plugin with the limits of a configuration, which are valid.
func New(limits []Limit, v vocabulary.Vocabulary) *Plugin {
	p := &Plugin{group: v.Group("events."), now: time.Now}
	for _, limit := range limits {
		p.enforcers = append(p.enforcers, newEnforcer(limit))
	}
	return p
}

// enforcer enforces one limit.
type enforcer struct {
	limit Limit
	// buckets are by digest of the key, because keys are as long as users make them.
	buckets *lru.Cache[[sha256.Size]byte, *rate.Limiter]
}

func newEnforcer(limit Limit) enforcer {
	size := int(limit.CacheSize)
	switch {
	case limit.Type == Server:
		size = 1
	case size == 0:
		size = defaultCacheSize
	}
	// It fails for sizes that are not positive only.
	buckets, _ := lru.New[[sha256.Size]byte, *rate.Limiter](size)
	return enforcer{limit, buckets}
}

// allows takes a token out of the bucket of a key.
func (e enforcer) allows(now time.Time, key []string) bool {
	// A zero byte keeps the parts apart: it is in no part, as all are JSON or names.
	digest := sha256.Sum256([]byte(strings.Join(key, "\x00")))
	bucket, ok := e.buckets.Get(digest)
	if !ok {
		made := rate.NewLimiter(rate.Limit(e.limit.QPS), int(e.limit.Burst))
		if bucket, ok, _ = e.buckets.PeekOrAdd(digest, made); !ok {
			bucket = made
		}
	}
	return bucket.AllowN(now, 1)
}

// Validate refuses with TooManyRequests (429). Every limit counts the event, also when
// another has been reached. A dry run counts nowhere.
func (p *Plugin) Validate(_ context.Context, r *review.Review) error {
	if r.Resource != "events" || r.Subresource != "" || r.DryRun || r.Group != "" && r.Group != p.group {
		return nil
	}
	if r.Operation != services.OperationCreate && r.Operation != services.OperationUpdate {
		return nil
	}
	now := p.now()
	var reached []string
	for _, e := range p.enforcers {
		key, err := e.key(r)
		if err != nil {
			return err
		}
		if e.allows(now, key) {
			continue
		}
		why := fmt.Sprintf("limit reached on type %s for key %s", e.limit.Type, shortened(strings.Join(key, "")))
		if !slices.Contains(reached, why) {
			reached = append(reached, why)
		}
	}
	switch len(reached) {
	case 0:
		return nil
	case 1:
		return tooMany(reached[0])
	}
	return tooMany("[" + strings.Join(reached, ", ") + "]")
}

func tooMany(why string) *services.Status {
	return &services.Status{Code: http.StatusTooManyRequests, Reason: services.ReasonTooManyRequests, Message: "Too many requests: " + why}
}

func shortened(key string) string {
	if len(key) <= maxKey {
		return key
	}
	return strings.ToValidUTF8(key[:maxKey], "") + "..."
}

// key returns the parts that identify the bucket of an event.
func (e enforcer) key(r *review.Review) ([]string, error) {
	switch e.limit.Type {
	case Namespace:
		return []string{r.Namespace}, nil
	case User:
		return []string{r.User.Name}, nil
	case SourceAndObject:
		return sourceAndObject(r)
	}
	return nil, nil
}

// event is the part of an event of either group that identifies its bucket.
type event struct {
	Source              source    `json:"source"`
	DeprecatedSource    source    `json:"deprecatedSource"`
	ReportingController string    `json:"reportingController"`
	ReportingInstance   string    `json:"reportingInstance"`
	InvolvedObject      reference `json:"involvedObject"`
	Regarding           reference `json:"regarding"`
}

type source struct {
	Component string `json:"component"`
	Host      string `json:"host"`
}

type reference struct {
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	APIVersion string `json:"apiVersion"`
}

func sourceAndObject(r *review.Review) ([]string, error) {
	object, err := r.Current()
	if err != nil {
		return nil, err
	}
	var e event
	if err := json.Unmarshal(object, &e); err != nil {
		return nil, services.BadRequest("the event is not readable: %v", err)
	}
	about := e.InvolvedObject
	if r.Group != "" {
		about = e.Regarding
		e.Source = source{cmp.Or(e.DeprecatedSource.Component, e.ReportingController), cmp.Or(e.DeprecatedSource.Host, e.ReportingInstance)}
	}
	return []string{e.Source.Component, e.Source.Host, about.Kind, about.Namespace, about.Name, about.UID, about.APIVersion}, nil
}
