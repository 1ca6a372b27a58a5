// Package permitted determines the namespaces in which a user may list or watch a type, for
// requests with permitted=true. It asks authz about each namespace, in batches, and never about an
// object. It serves section "Authorization notes" of the specification.
package permitted

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// maxNamespaces bounds the namespaces of a user who may not read all of them: each is read, and its decision followed.
	maxNamespaces = 2000
	// patience bounds the determination of a set.
	patience = 30 * time.Second
	// renewals is how many sets of open watches are determined at a time.
	renewals = 2
	// lookPeriod is the period of checks for a change of policy by an open watch, and fullPeriod how
	// often its set is determined without one: some modes of authorization depend on more.
	lookPeriod, fullPeriod = time.Second, 30 * time.Second
)

// Config configures a Finder.
type Config struct {
	Authz  services.Authz
	Store  services.Reader
	Policy Policy
}

// Policy is what is known of roles and bindings.
type Policy interface {
	// Newest returns the revision of the newest one; 0 if changes are not known.
	Newest() int64
	// Unchanged reports whether none has changed after a revision.
	Unchanged(since int64) bool
}

// Finder determines sets.
type Finder struct {
	config   Config
	renewing chan struct{}
}

// New returns a Finder.
func New(c Config) *Finder { return &Finder{config: c, renewing: make(chan struct{}, renewals)} }

// Decision is what authz has decided about a namespace, or about all of them.
type Decision struct {
	services.Attributes
	services.Decision
}

// Set is what one request may read. It never changes.
type Set struct {
	// All is true if the user may read every namespace.
	All bool
	// Namespaces are those that the user may read, in order, unless All is true.
	Namespaces []string
	// Decisions are those that allow the request.
	Decisions []Decision

	question services.Attributes
	newest   int64
	finder   *Finder
}

// Find determines the set of the user of a question about all namespaces. It returns Forbidden
// (403) if the user may read too many namespaces, and the error of authz if that cannot decide.
func (f *Finder) Find(ctx context.Context, q services.Attributes) (*Set, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &Set{question: q, newest: f.config.Policy.Newest(), finder: f}
	// If authz denies this, its state is as new as the request.
	d, err := f.config.Authz.Authorize(ctx, q)
	if err != nil {
		return nil, err
	}
	if d.Allowed {
		s.All, s.Decisions = true, []Decision{{q, d}}
		return s, nil
	}
	batch := make([]services.Attributes, 0, services.MaxAuthzBatch)
	r := services.ListRequest{GroupResource: resource.GroupResource{Resource: "namespaces"}}
	_, err = services.ForEach(ctx, f.config.Store, r, func(o services.Object) error {
		of := q
		of.Namespace = o.Key.Name
		if batch = append(batch, of); len(batch) < cap(batch) {
			return nil
		}
		err := s.authorize(ctx, batch)
		batch = batch[:0]
		return err
	})
	if err == nil {
		err = s.authorize(ctx, batch)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.Decisions, func(a, b Decision) int { return strings.Compare(a.Namespace, b.Namespace) })
	for i := range s.Decisions {
		s.Namespaces = append(s.Namespaces, s.Decisions[i].Namespace)
	}
	return s, nil
}

// authorize adds the decisions that allow one of some questions.
func (s *Set) authorize(ctx context.Context, questions []services.Attributes) error {
	for i, r := range services.AuthorizeAll(ctx, s.finder.config.Authz, questions) {
		switch {
		case r.Err != nil:
			return r.Err
		case r.Allowed && len(s.Decisions) == maxNamespaces:
			q := &s.question
			return services.Forbidden(q.Group, q.Resource, "", "permitted=true cannot be used: you may read too many namespaces, but not all")
		case r.Allowed:
			s.Decisions = append(s.Decisions, Decision{questions[i], r.Decision})
		}
	}
	return nil
}

// Restricts reports whether a request with this set must not read every namespace.
func (s *Set) Restricts() bool { return s != nil && !s.All }

// Digest identifies the set.
func (s *Set) Digest() []byte {
	h := sha256.New()
	if s.All {
		h.Write([]byte("*"))
	}
	for _, name := range s.Namespaces {
		h.Write(append([]byte(name), 0))
	}
	return h.Sum(nil)[:8]
}

// Holds reports whether the set was the same at a revision, as far as is known: a watch may then
// continue from there.
func (s *Set) Holds(revision int64) bool { return s.finder.config.Policy.Unchanged(revision) }

// Follow calls end with Changed once the set is no longer the same, until ctx ends.
func (s *Set) Follow(ctx context.Context, end func(error)) {
	f, seen, at := s.finder, s.newest, time.Now()
	look := time.NewTicker(lookPeriod)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if f.config.Policy.Newest() == seen && time.Since(at) < fullPeriod {
			continue
		}
		now, err := f.renew(ctx, s.question)
		switch {
		case services.IsReason(err, services.ReasonForbidden), err == nil && (now.All != s.All || !slices.Equal(now.Namespaces, s.Namespaces)):
			end(Changed())
			return
		case err == nil:
			seen, at = now.newest, time.Now()
		}
	}
}

// renew is Find for an open watch.
func (f *Finder) renew(ctx context.Context, q services.Attributes) (*Set, error) {
	select {
	case f.renewing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-f.renewing }()
	return f.Find(ctx, q)
}

// Changed is the error of a request whose set has changed: the client must list again.
func Changed() *services.Status {
	return services.Expired("the namespaces that you may read have changed: list them again")
}
