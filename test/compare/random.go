package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/portico-platform/portico/test/compare/internal/corpus"
	"github.com/portico-platform/portico/test/compare/internal/normal"
	"github.com/portico-platform/portico/test/compare/internal/random"
	"github.com/portico-platform/portico/test/compare/internal/verdict"
)

// randomly sends random sequences of requests to both sides.
type randomly struct {
	*comparison
	intended *verdict.Intended
	seed     uint64
	count    int

	mutex      sync.Mutex // protects intended and found
	found      map[string]*finding
	requests   atomic.Int64
	namespaces atomic.Int64
}

// finding is a class of differences with the first sequence that shows it.
type finding struct {
	verdict.Difference
	number uint64
	times  int
	steps  []corpus.Step // the last one shows the difference
	body   []byte        // of the last one, as it was sent
}

func (r *randomly) run(ctx context.Context) error {
	generator, err := random.NewGenerator()
	if err != nil {
		return err
	}
	if err := r.define(ctx); err != nil {
		return err
	}
	r.found = map[string]*finding{}
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(r.parallel)
	for number := range uint64(r.count) {
		group.Go(func() error {
			s := generator.Sequence(r.seed, number)
			if !r.only.MatchString(s.Kind) {
				return nil
			}
			difference, err := r.sequence(each, s.Kind, s.Steps)
			if difference != nil {
				difference.number = number
				r.add(difference)
			}
			return err
		})
	}
	err = group.Wait()
	if err == nil {
		fmt.Fprintf(os.Stderr, "%d requests, %d classes to minimise\n", r.requests.Load(), len(r.found))
		group, each = errgroup.WithContext(ctx)
		group.SetLimit(r.parallel)
		for _, f := range r.found {
			group.Go(func() error { return r.minimise(each, f) })
		}
		err = group.Wait()
	}
	return errors.Join(err, r.print(os.Stdout)) // what has been found so far, if it is interrupted
}

// define creates the types of the custom objects and waits until they are served.
func (r *randomly) define(ctx context.Context) error {
	definitions, err := random.Definitions()
	if err != nil {
		return err
	}
	for _, s := range []*side{r.portico, r.peer} {
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

func (r *randomly) add(f *finding) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	name := nameOf(f.Difference)
	if r.found[name] == nil {
		r.found[name] = f
	}
	r.found[name].times++
}

// varying matches what is not the same in all differences of a class.
var varying = regexp.MustCompile(`\[\d+\]| of [a-z-]+-\d+>`)

// nameOf returns the class of a difference.
func nameOf(d verdict.Difference) string {
	return strings.Join([]string{d.Step, varying.ReplaceAllString(d.Path, "[]"), varying.ReplaceAllString(short(d.Portico), ""), varying.ReplaceAllString(short(d.Peer), "")}, "\n")
}

// short bounds what is printed of a text.
func short(text string) string { return text[:min(len(text), 400)] }

// sequence sends steps to both sides, in a namespace of their own, until there is an open
// difference. It returns the first one, or nil.
func (r *randomly) sequence(ctx context.Context, kind string, steps []corpus.Step) (*finding, error) {
	namespace := fmt.Sprintf("rnd%06d", r.namespaces.Add(1))
	prepare := random.Fill(random.Prepare(), namespace, nil)
	one := corpus.Case{}
	ours, theirs := r.runner(r.portico, &one), r.runner(r.peer, &one)
	for _, runner := range []*runner{ours, theirs} {
		runner.namespace = namespace
		if _, err := runner.side.send(ctx, &prepare, nil); err != nil {
			return nil, err
		}
	}
	for i := range steps {
		var a, b map[string]any
		both, ctx := errgroup.WithContext(ctx)
		send := func(r *runner, into *map[string]any) func() error {
			return func() (err error) {
				step := random.Fill(steps[i], namespace, r.seen)
				*into, err = r.run(ctx, &step)
				return err
			}
		}
		both.Go(send(ours, &a))
		both.Go(send(theirs, &b))
		if err := both.Wait(); err != nil {
			return nil, err
		}
		r.requests.Add(1)
		what := steps[i].Name[:strings.LastIndex(steps[i].Name, "-")]
		for _, answer := range []map[string]any{a, b} {
			events(&steps[i], answer)
			if code, _ := answer["code"].(string); code >= "400" {
				delete(answer, "warnings") // they depend on what is checked first
			}
		}
		if open := r.open(verdict.Compare(kind, "random/"+what, a, b)); len(open) > 0 {
			step := random.Fill(steps[i], random.Namespace, ours.seen)
			return &finding{Difference: open[0], steps: steps[:i+1], body: step.Content(nil)}, nil
		}
	}
	return nil, nil
}

// open returns the differences that are not intended.
func (r *randomly) open(all []verdict.Difference) []verdict.Difference {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.DeleteFunc(all, r.intended.Covers)
}

// maxBodyShown bounds what is printed of a body.
const maxBodyShown = 2000

// attemptsToMinimise bounds the sequences that are tried for one finding.
const attemptsToMinimise = 40

// minimise removes steps and their parts while the difference remains.
func (r *randomly) minimise(ctx context.Context, f *finding) error {
	attempts := 0
	try := func(steps []corpus.Step) (bool, error) {
		if attempts++; attempts > attemptsToMinimise {
			return false, nil
		}
		other, err := r.sequence(ctx, f.Kind, steps)
		same := other != nil && len(other.steps) == len(steps) && nameOf(other.Difference) == nameOf(f.Difference)
		if same {
			f.steps, f.body = steps, other.body
		}
		return same, err
	}
	for i := len(f.steps) - 2; i >= 0; i-- {
		if _, err := try(slices.Delete(slices.Clone(f.steps), i, i+1)); err != nil {
			return err
		}
	}
	for i := len(f.steps) - 1; i >= 0; i-- {
		for again := true; again; {
			again = false
			for _, smaller := range random.Smaller(f.steps[i]) {
				steps := slices.Clone(f.steps)
				steps[i] = smaller
				same, err := try(steps)
				if err != nil {
					return err
				}
				if same {
					again = true
					break
				}
			}
		}
	}
	return nil
}

// print writes the classes, the most frequent first.
func (r *randomly) print(w io.Writer) error {
	var out bytes.Buffer
	open := 0
	all := slices.SortedFunc(maps.Values(r.found), func(a, b *finding) int {
		return cmp.Or(b.times-a.times, strings.Compare(nameOf(a.Difference), nameOf(b.Difference)))
	})
	for _, f := range all {
		open += f.times
		fmt.Fprintf(&out, "%d x %s\n    portico: %s\n    peer:    %s\n    at %s %s, sequence %d\n", f.times, f.Path, cmp.Or(short(f.Portico), "nothing"), cmp.Or(short(f.Peer), "nothing"), f.Kind, f.Step, f.number)
		for i, step := range f.steps {
			body, ok := step.Body.(string)
			if !ok && step.Body != nil {
				body = "an earlier answer, changed"
			}
			if i == len(f.steps)-1 {
				body = string(f.body)
			}
			fmt.Fprintf(&out, "      %s: %s %s?%s %s %s %q\n", step.Name, step.Method, step.Path, step.Query, step.Type, step.Accept, body[:min(len(body), maxBodyShown)])
		}
	}
	fmt.Fprintf(&out, "%d sequences, %d requests, %d open in %d classes\n", r.count, r.requests.Load(), open, len(all))
	_, err := w.Write(out.Bytes())
	if r.report.Open = open; err != nil {
		return err
	}
	return nil
}

// events makes the body of a watch comparable: a list of events without bookmarks, except for the one
// after the initial events. Portico sends one at the end, so that a client continues at the newest version.
func events(step *corpus.Step, answer map[string]any) {
	if step.Method != http.MethodGet || !strings.Contains(step.Query, "watch=") || answer["code"] != "200" {
		return
	}
	all, many := answer["body"].([]any)
	if !many {
		all = []any{answer["body"]}
	}
	answer["body"] = slices.DeleteFunc(all, func(event any) bool {
		e, _ := event.(map[string]any)
		object, _ := e["object"].(map[string]any)
		meta, _ := object["metadata"].(map[string]any)
		return event == nil || e["type"] == "BOOKMARK" && meta["annotations"] == nil && object["kind"] != "Table"
	})
}

// anonymous replaces the namespace of a sequence, which is another one each time, by a name of
// the same length.
func anonymous(a normal.Answer, namespace string) normal.Answer {
	if namespace != "" {
		a.Body = bytes.ReplaceAll(a.Body, []byte(namespace), []byte(random.Namespace))
	}
	return a
}
