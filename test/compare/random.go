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
	// next returns the sequence of a number, and false behind the last one.
	next func(number uint64) (random.Sequence, bool)
	// prefix begins the names of steps in the lists of intended differences.
	prefix string

	mutex      sync.Mutex // protects intended and found
	found      map[string]*finding
	sequences  int
	requests   atomic.Int64
	namespaces atomic.Int64
}

// finding is a class of differences with the first sequence that shows it.
type finding struct {
	verdict.Difference
	seed  string // what to repeat
	times int
	steps []corpus.Step // the last one shows the difference
	body  []byte        // of the last one, as it was sent
}

func (r *randomly) run(ctx context.Context) error {
	r.found = map[string]*finding{}
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(r.parallel)
	for number := uint64(0); each.Err() == nil; number++ {
		s, more := r.next(number)
		if !more {
			break
		}
		if !r.only.MatchString(s.Kind) {
			continue
		}
		r.sequences++
		group.Go(func() error {
			difference, err := r.sequence(each, s.Kind, s.Steps)
			if difference != nil {
				difference.seed = s.Seed
				r.add(difference)
			}
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		fmt.Fprintf(os.Stderr, "%d requests, %d classes to minimise\n", r.requests.Load(), len(r.found))
		group, each = errgroup.WithContext(ctx)
		group.SetLimit(r.parallel)
		for _, name := range slices.Sorted(maps.Keys(r.found))[:min(len(r.found), findingsToMinimise)] {
			f := r.found[name]
			group.Go(func() error { return r.minimise(each, f) })
		}
		err = group.Wait()
	}
	return errors.Join(err, r.print(os.Stdout)) // what has been found so far, if it is interrupted
}

func (r *randomly) add(f *finding) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	name := r.nameOf(f.Difference)
	if r.found[name] == nil {
		r.found[name] = f
	}
	r.found[name].times++
}

// varying matches what is not the same in all differences of a class.
var varying = regexp.MustCompile(`\[\d+\]| of [a-z-]+-\d+>`)

// values matches what random schemas and objects make different in differences of a class: paths, names and
// numbers.
var values = regexp.MustCompile(`[a-z]*(spec|status)[][\w."]*|"[^" ]*"|\d+(\.\d+)?(e\+\d+)?`)

// nameOf returns the class of a difference.
func (r *randomly) nameOf(d verdict.Difference) string {
	if r.prefix == schemasPrefix {
		return strings.Join([]string{d.Step, values.ReplaceAllString(d.Path, ""), values.ReplaceAllString(short(d.Portico), ""), values.ReplaceAllString(short(d.Peer), "")}, "\n")
	}
	return strings.Join([]string{d.Step, varying.ReplaceAllString(d.Path, "[]"), varying.ReplaceAllString(short(d.Portico), ""), varying.ReplaceAllString(short(d.Peer), "")}, "\n")
}

// short bounds what is printed of a text.
func short(text string) string { return text[:min(len(text), 400)] }

// sequence sends steps to both sides, in a namespace of their own, until there is an open
// difference. It returns the first one, or nil.
func (r *randomly) sequence(ctx context.Context, kind string, steps []corpus.Step) (found *finding, err error) {
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
		both, each := errgroup.WithContext(ctx)
		send := func(r *runner, into *map[string]any) func() error {
			return func() (err error) {
				step := random.Fill(steps[i], namespace, r.seen)
				*into, err = r.run(each, &step)
				return err
			}
		}
		both.Go(send(ours, &a))
		both.Go(send(theirs, &b))
		if err := both.Wait(); err != nil {
			return nil, err
		}
		r.requests.Add(1)
		what, compared := steps[i].Name[:strings.LastIndex(steps[i].Name, "-")], kind
		if steps[i].Path == random.DefinitionsPath {
			compared = random.DefinitionsKind
			defer func() { err = errors.Join(err, r.withdraw(ctx, namespace)) }()
		}
		for _, answer := range []map[string]any{a, b} {
			events(&steps[i], answer)
			if code, _ := answer["code"].(string); code >= "400" {
				delete(answer, "warnings") // they depend on what is checked first
			}
		}
		if open := r.open(verdict.Compare(compared, r.prefix+what, a, b)); len(open) > 0 {
			step := random.Fill(steps[i], random.Namespace, ours.seen)
			return &finding{Difference: open[0], steps: steps[:i+1], body: step.Content(nil)}, nil
		}
		if compared == random.DefinitionsKind {
			if a["code"] != "201" {
				return nil, nil // refused by both
			}
			if err := r.awaitWidgets(ctx, namespace); err != nil {
				return nil, err
			}
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
const attemptsToMinimise = 80

// findingsToMinimise bounds the findings of which this is done.
const findingsToMinimise = 20

// minimise removes steps and their parts while the difference remains.
func (r *randomly) minimise(ctx context.Context, f *finding) error {
	attempts := 0
	try := func(steps []corpus.Step) (bool, error) {
		if attempts++; attempts > attemptsToMinimise {
			return false, nil
		}
		other, err := r.sequence(ctx, f.Kind, steps)
		same := other != nil && len(other.steps) == len(steps) && r.nameOf(other.Difference) == r.nameOf(f.Difference)
		if same {
			f.steps, f.body = steps, other.body
		}
		return same, err
	}
	if last := len(f.steps) - 1; last > 1 { // mostly, the first and the last request are enough
		if _, err := try([]corpus.Step{f.steps[0], f.steps[last]}); err != nil {
			return err
		}
	}
	for i := len(f.steps) - 2; i >= 0; i-- {
		if _, err := try(slices.Delete(slices.Clone(f.steps), i, i+1)); err != nil {
			return err
		}
	}
	for i := len(f.steps) - 1; i >= 0; i-- {
		for at := 0; ; {
			smaller := random.Smaller(f.steps[i])
			if at >= len(smaller) {
				break
			}
			steps := slices.Clone(f.steps)
			steps[i] = smaller[at]
			same, err := try(steps)
			if err != nil {
				return err
			}
			if !same { // otherwise the next part is in the place of the one that is gone
				at++
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
		return cmp.Or(b.times-a.times, strings.Compare(r.nameOf(a.Difference), r.nameOf(b.Difference)))
	})
	for _, f := range all {
		open += f.times
		fmt.Fprintf(&out, "%d x %s\n    portico: %s\n    peer:    %s\n    at %s %s, %s\n", f.times, f.Path, cmp.Or(short(f.Portico), "nothing"), cmp.Or(short(f.Peer), "nothing"), f.Kind, f.Step, f.seed)
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
	fmt.Fprintf(&out, "%d sequences, %d requests, %d open in %d classes\n", r.sequences, r.requests.Load(), open, len(all))
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
