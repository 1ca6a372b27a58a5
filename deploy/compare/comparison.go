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

	"github.com/portico-platform/portico/deploy/compare/internal/corpus"
	"github.com/portico-platform/portico/deploy/compare/internal/normal"
	"github.com/portico-platform/portico/deploy/compare/internal/verdict"
)

// comparison sends the corpus to both sides.
type comparison struct {
	portico, peer *side
	only          *regexp.Regexp
	parallel      int
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
	// Kinds of one name may be versions of the same objects, so they take turns. The
	// answers are counted in the order of the kinds, however they came.
	results := make([][][]verdict.Difference, len(kinds))
	turns := map[string][]int{}
	for i, k := range kinds {
		turns[k.Plural] = append(turns[k.Plural], i)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.parallel)
	for _, name := range slices.Sorted(maps.Keys(turns)) {
		group.Go(func() (err error) {
			for _, i := range turns[name] {
				if results[i], err = c.kind(ctx, kinds[i], byKind[kinds[i]]); err != nil {
					return err // what was found until then is reported
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
		ours, theirs := c.player(c.portico, &one), c.player(c.peer, &one)
		for i := range one.Steps {
			step := &one.Steps[i]
			if step.Needs != "" && (ours.seen[step.Needs] == nil || theirs.seen[step.Needs] == nil) {
				continue
			}
			var a, b map[string]any
			both, ctx := errgroup.WithContext(ctx)
			both.Go(func() (err error) { a, err = ours.play(ctx, step); return err })
			both.Go(func() (err error) { b, err = theirs.play(ctx, step); return err })
			if err := both.Wait(); err != nil {
				return all, fmt.Errorf("%s %s/%s: %w", k.ID(), one.Name, step.Name, err)
			}
			all = append(all, verdict.Compare(k.ID(), one.Name+"/"+step.Name, a, b))
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %d requests\n", k.ID(), len(all))
	return all, nil
}

// player plays the steps of one case to one side.
type player struct {
	side  *side
	whole *corpus.Case
	names *normal.Names
	seen  corpus.Seen
}

// player starts a case. Portico's documents say which fields are compared on both
// sides: the reference server is of a later release.
func (c *comparison) player(s *side, whole *corpus.Case) *player {
	return &player{side: s, whole: whole, names: normal.NewNames(c.portico.document), seen: corpus.Seen{}}
}

func (p *player) play(ctx context.Context, step *corpus.Step) (map[string]any, error) {
	answer, err := p.side.send(ctx, step, p.seen)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // a server that does not answer is a difference, too
		return map[string]any{"code": "no answer: " + err.Error()}, nil
	}
	tree, parsed := p.names.Tree(step.Name, answer)
	if answer.Code < 300 && parsed != nil {
		p.seen[step.Name] = parsed
		return tree, p.settle(ctx, step)
	}
	return tree, nil
}

const (
	// pause is how long a settled object stays the same.
	pause = 300 * time.Millisecond
	// settling bounds the wait for that.
	settling = 10 * time.Second
)

// settle waits until the server is done with an object that it works on itself, as
// on a definition, and remembers its newest state.
func (p *player) settle(ctx context.Context, step *corpus.Step) error {
	if p.whole.Settles == "" || step.Method == http.MethodGet || strings.Contains(step.Query, "dryRun") {
		return nil
	}
	read := &corpus.Step{Method: http.MethodGet, Path: p.whole.Settles}
	last := ""
	for end := time.Now().Add(settling); time.Now().Before(end); {
		answer, err := p.side.send(ctx, read, nil)
		if err != nil || answer.Code == http.StatusNotFound {
			return err
		}
		// What is being deleted goes on until it is gone, unless something holds it.
		if string(answer.Body) == last && !cleaning(answer.Body) {
			if p.seen[step.Name]["kind"] == p.whole.Kind.Kind.Kind {
				_, p.seen[step.Name] = normal.NewNames(p.side.document).Tree("", answer)
			}
			return nil
		}
		last = string(answer.Body)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return nil
}

// cleaning reports whether an object is being deleted, and held by nothing but the
// cleanup of the server itself.
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
