package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/portico-platform/portico/test/compare/internal/corpus"
	"github.com/portico-platform/portico/test/compare/internal/random"
)

// define creates the types of the custom objects and waits until they are served.
func (c *comparison) define(ctx context.Context) error {
	definitions, err := random.Definitions()
	if err != nil {
		return err
	}
	for _, s := range []*side{c.portico, c.peer} {
		for _, step := range definitions {
			if a, err := s.send(ctx, &step, nil); err != nil || a.Code != http.StatusCreated {
				return fmt.Errorf("%s: %d %s %w", s.server.Name, a.Code, a.Body, err)
			}
		}
		for _, step := range random.Ready() {
			if err := s.awaitServed(ctx, &step); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitServed waits until a request succeeds.
func (s *side) awaitServed(ctx context.Context, step *corpus.Step) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(stablePeriod)
	defer ticker.Stop()
	for {
		if a, _ := s.send(ctx, step, nil); a.Code == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve %s", s.server.Name, step.Path)
		case <-ticker.C:
		}
	}
}

// schemasPrefix begins the names of the steps about random schemas.
const schemasPrefix = "schemas/"

// sequences returns the random sequences about objects of kinds that both servers have.
func (s *settings) sequences() (func(uint64) (random.Sequence, bool), error) {
	generator, err := random.NewGenerator()
	return func(number uint64) (random.Sequence, bool) {
		if number >= uint64(s.random) { //nolint:gosec // not negative
			return random.Sequence{}, false
		}
		return generator.Sequence(s.seed, number), true
	}, err
}

// randomSchemas returns sequences about random schemas until the time is over: first those of the seeds that
// have once shown a fault.
func (s *settings) randomSchemas() (func(uint64) (random.Sequence, bool), error) {
	kept, err := random.KeptSeeds()
	if s.seed != defaultSeed {
		kept = nil
	}
	end := time.Now().Add(s.schemas)
	return func(number uint64) (random.Sequence, bool) {
		if s.random > 0 && number >= uint64(s.random) || !time.Now().Before(end) { //nolint:gosec // not negative
			return random.Sequence{}, false
		}
		if number < uint64(len(kept)) {
			return random.Schema(kept[number]), true
		}
		return random.Schema(s.seed + number - uint64(len(kept))), true
	}, err
}

// awaitWidgets waits until both servers serve the type that a sequence has defined.
func (c *comparison) awaitWidgets(ctx context.Context, namespace string) error {
	step := random.Fill(corpus.Step{Method: http.MethodGet, Path: random.WidgetsPath}, namespace, nil)
	return errors.Join(c.portico.awaitServed(ctx, &step), c.peer.awaitServed(ctx, &step))
}

// withdraw deletes the type that a sequence has defined, so that the servers do not get slower.
func (c *comparison) withdraw(ctx context.Context, namespace string) error {
	step := random.Fill(corpus.Step{Method: http.MethodDelete, Path: random.DefinitionsPath + "/" + random.WidgetsName}, namespace, nil)
	_, ours := c.portico.send(ctx, &step, nil)
	_, theirs := c.peer.send(ctx, &step, nil)
	return errors.Join(ours, theirs)
}
