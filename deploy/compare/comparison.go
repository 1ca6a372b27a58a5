package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

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
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, all := range results {
		for _, differences := range all {
			c.report.Add(differences)
		}
	}
	return nil
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
		ours, theirs := c.player(c.portico), c.player(c.peer)
		for i := range one.Steps {
			step := &one.Steps[i]
			name := one.Name + "/" + step.Name
			var a, b map[string]any
			both, ctx := errgroup.WithContext(ctx)
			both.Go(func() (err error) { a, err = ours.play(ctx, step); return err })
			both.Go(func() (err error) { b, err = theirs.play(ctx, step); return err })
			if err := both.Wait(); err != nil {
				return all, fmt.Errorf("%s %s: %w", k.ID(), name, err)
			}
			all = append(all, verdict.Compare(k.ID(), name, a, b))
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %d requests\n", k.ID(), len(all))
	return all, nil
}

// player plays the steps of one case to one side.
type player struct {
	side  *side
	names *normal.Names
	seen  corpus.Seen
}

// player starts a case. Portico's documents say which fields are compared on both
// sides: the reference server is of a later release.
func (c *comparison) player(s *side) *player {
	return &player{side: s, names: normal.NewNames(c.portico.document), seen: corpus.Seen{}}
}

func (p *player) play(ctx context.Context, step *corpus.Step) (map[string]any, error) {
	answer, err := p.side.send(ctx, step, p.seen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.side.server.Name, err)
	}
	tree, parsed := p.names.Tree(answer)
	if answer.Code < 300 {
		p.seen[step.Name] = parsed
	}
	return tree, nil
}
