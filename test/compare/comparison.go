package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/portico-platform/portico/test/compare/internal/corpus"
	"github.com/portico-platform/portico/test/compare/internal/normal"
	"github.com/portico-platform/portico/test/compare/internal/verdict"
)

// comparison sends the corpus to both sides.
type comparison struct {
	portico, peer *side
	only          *regexp.Regexp
	parallel      int
	older         bool // portico emulates an older release than that of the peer
	report        *verdict.Report
}

func (c *comparison) run(ctx context.Context) error {
	kinds, onlyPortico, onlyPeer, err := corpus.Kinds(c.portico.discovered, c.peer.discovered)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d kinds; only portico serves %s; only the peer serves %s\n", len(kinds), strings.Join(onlyPortico, " "), strings.Join(onlyPeer, " "))
	cases, err := corpus.New(kinds, c.portico.document, c.peer.document)
	if err != nil {
		return err
	}
	byKind := map[*corpus.Kind][]corpus.Case{}
	for _, one := range cases {
		if c.only.MatchString(one.Kind.ID() + "/" + one.Name) {
			byKind[one.Kind] = append(byKind[one.Kind], one)
		}
	}
	// Kinds with the same plural name may be versions of the same objects, and Services have
	// addresses of all ranges, so they run one after the other. The results are counted in the order of the kinds.
	results := make([][][]verdict.Difference, len(kinds))
	turns := map[string][]int{}
	for i, k := range kinds {
		turn := k.Plural
		if turn == "servicecidrs" {
			turn = "services"
		}
		turns[turn] = append(turns[turn], i)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.parallel)
	for _, name := range slices.Sorted(maps.Keys(turns)) {
		group.Go(func() (err error) {
			for _, i := range turns[name] {
				if results[i], err = c.kind(ctx, kinds[i], byKind[kinds[i]]); err != nil {
					return err // the differences found so far are reported
				}
			}
			return nil
		})
	}
	err = group.Wait()
	for _, all := range results {
		for _, differences := range all {
			c.report.Add(differences)
		}
	}
	return err
}

// kind sends the cases about a kind and returns the differences of each request.
func (c *comparison) kind(ctx context.Context, k *corpus.Kind, cases []corpus.Case) (all [][]verdict.Difference, err error) {
	if len(cases) == 0 {
		return nil, nil
	}
	prepare := corpus.Prepare(k)
	for _, s := range []*side{c.portico, c.peer} {
		if _, err := s.send(ctx, &prepare, nil); err != nil {
			return nil, err
		}
	}
	for _, one := range cases {
		ours, theirs := c.runner(c.portico, &one), c.runner(c.peer, &one)
		for i := range one.Steps {
			step := &one.Steps[i]
			if step.Needs != "" && (ours.seen[step.Needs] == nil || theirs.seen[step.Needs] == nil) {
				continue
			}
			var a, b map[string]any
			both, ctx := errgroup.WithContext(ctx)
			both.Go(func() (err error) { a, err = ours.run(ctx, step); return err })
			both.Go(func() (err error) { b, err = theirs.run(ctx, step); return err })
			if err := both.Wait(); err != nil {
				return all, fmt.Errorf("%s %s/%s: %w", k.ID(), one.Name, step.Name, err)
			}
			all = append(all, verdict.Compare(k.ID(), one.Name+"/"+step.Name, a, b))
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %d requests\n", k.ID(), len(all))
	return all, nil
}

// runner sends the steps of one case to one server.
type runner struct {
	side  *side
	whole *corpus.Case
	names *normal.Names
	seen  corpus.Seen
	// namespace is that of a random sequence, otherwise empty.
	namespace string
}

// runner starts a case. If the reference server is a later release, Portico's documents define
// the compared fields for both.
func (c *comparison) runner(s *side, whole *corpus.Case) *runner {
	r := &runner{side: s, whole: whole, names: normal.NewNames(nil), seen: corpus.Seen{}}
	if c.older {
		r.names = normal.NewNames(c.portico.document)
	}
	return r
}

func (r *runner) run(ctx context.Context, step *corpus.Step) (map[string]any, error) {
	answer, err := r.side.send(ctx, step, r.seen)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // a missing response is a difference, too
		return map[string]any{"code": "no answer: " + err.Error()}, nil
	}
	tree, parsed := r.names.Tree(step.Name, anonymous(answer, r.namespace))
	if answer.Code < 300 && parsed != nil {
		r.seen[step.Name] = parsed
		return tree, r.waitStable(ctx, step)
	}
	return tree, nil
}

const (
	// stablePeriod is how long an object must stay the same to count as stable.
	stablePeriod = 300 * time.Millisecond
	// stableTimeout bounds the wait for a stable object.
	stableTimeout = 30 * time.Second
)

// waitStable waits until an object that the server itself changes, such as a custom
// resource definition, stays the same, and stores its newest state.
func (r *runner) waitStable(ctx context.Context, step *corpus.Step) error {
	if r.whole.Unstable == "" || step.Method == http.MethodGet || strings.Contains(step.Query, "dryRun") {
		return nil
	}
	read := &corpus.Step{Method: http.MethodGet, Path: r.whole.Unstable}
	last := ""
	for end := time.Now().Add(stableTimeout); time.Now().Before(end); {
		answer, err := r.side.send(ctx, read, nil)
		if err != nil || answer.Code == http.StatusNotFound {
			return err
		}
		// An object with a deletion timestamp counts as stable if finalizers keep it.
		if string(answer.Body) == last && !cleaning(answer.Body) && !unchecked(answer.Body) {
			if r.seen[step.Name]["kind"] == r.whole.Kind.Kind.Kind {
				_, r.seen[step.Name] = normal.NewNames(nil).Tree("", answer)
			}
			return nil
		}
		last = string(answer.Body)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(stablePeriod):
		}
	}
	return nil
}

// unchecked reports whether an object is an APIService whose server has not been looked for, or
// a FlowSchema whose priority level has not.
func unchecked(body []byte) bool {
	var object struct {
		Kind   string
		Status struct{ Conditions []any }
	}
	err := json.Unmarshal(body, &object)
	return err == nil && (object.Kind == "APIService" || object.Kind == "FlowSchema") && len(object.Status.Conditions) == 0
}

// cleaning reports whether an object is being deleted, with no finalizers but those of the
// server itself.
func cleaning(body []byte) bool {
	var object struct {
		Metadata struct {
			DeletionTimestamp string
			Finalizers        []string
		}
	}
	err := json.Unmarshal(body, &object)
	held := object.Metadata.Finalizers
	return err == nil && object.Metadata.DeletionTimestamp != "" && len(held) == 1 && strings.HasPrefix(held[0], "customresourcecleanup.")
}
