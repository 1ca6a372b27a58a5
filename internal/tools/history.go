package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/internal/plain"
)

// revision is a state of an object and what changed in it.
type revision struct {
	Type            string   `json:"type"`
	ResourceVersion string   `json:"resourceVersion"`
	Managers        []string `json:"managers,omitempty"`
	Changes         []change `json:"changes,omitempty"`
	// First is true for the oldest state that is held: what changed in it is not known.
	First bool `json:"first,omitempty"`
}

// change is a field that has another value.
type change struct {
	Path string `json:"path"`
	From any    `json:"from,omitempty"`
	To   any    `json:"to,omitempty"`
}

// maxRevisions bounds the states of an object that are read.
const maxRevisions = 1000

func (s *session) history() *cobra.Command {
	return &cobra.Command{
		Use: "history RESOURCE NAME", Short: "Shows the changes of an object within --watch-history, with the field manager of each", Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := s.access()
			if err != nil {
				return err
			}
			objects, err := s.objects(a, args[0])
			if err != nil {
				return err
			}
			events, err := pastEvents(c.Context(), objects, args[1])
			if err != nil {
				return err
			}
			revisions := revisionsOf(events)
			return s.print(map[string]any{"revisions": revisions}, func(w io.Writer) error { return writeRevisions(w, revisions) })
		},
	}
}

// objects returns the client of a resource, in the namespace if it has one.
func (s *session) objects(a *access, resource string) (dynamic.ResourceInterface, error) {
	gvr, err := a.mapper.ResourceFor(schema.ParseGroupResource(resource).WithVersion(""))
	if err != nil {
		return nil, err
	}
	kind, err := a.mapper.KindFor(gvr)
	if err != nil {
		return nil, err
	}
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return a.client.Resource(gvr), err
	}
	namespace, err := s.inNamespace()
	return a.client.Resource(gvr).Namespace(namespace), err
}

// maxExpired bounds how often the beginning of the history is requested: it moves meanwhile.
const maxExpired = 5

// heldAfter finds the revision after which changes are held in the message of an Expired error.
var heldAfter = regexp.MustCompile(`\D(\d+)\)$`)

// pastEvents returns the events of an object in the history that is held.
func pastEvents(ctx context.Context, objects dynamic.ResourceInterface, name string) ([]watch.Event, error) {
	newest := ""
	object, err := objects.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		newest = object.GetResourceVersion()
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	var events []watch.Event
	after := "1"
	for range maxExpired {
		events, err = replay(ctx, objects, name, after, newest)
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			break
		}
		found := heldAfter.FindStringSubmatch(err.Error())
		if found == nil || found[1] == after {
			break
		}
		after = found[1]
	}
	if err == nil && len(events) == 0 {
		if object == nil {
			return nil, fmt.Errorf("%q does not exist, and the history has no change of it", name)
		}
		events = []watch.Event{{Type: watch.Added, Object: object}}
	}
	return events, err
}

// replay returns the events after a revision: up to the newest one of the object, or, if that is
// empty, all until the watch ends.
func replay(ctx context.Context, objects dynamic.ResourceInterface, name, after, newest string) (events []watch.Event, err error) {
	seconds := int64(2) // the end of a watch without further events
	w, err := objects.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: after, TimeoutSeconds: &seconds})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return nil, apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, errors.New("the watch has an event without an object")
		}
		if events = append(events, event); len(events) == maxRevisions || object.GetResourceVersion() == newest {
			break
		}
	}
	return events, ctx.Err()
}

// revisionsOf compares each state with the one before.
func revisionsOf(events []watch.Event) []revision {
	revisions := []revision{}
	var before *unstructured.Unstructured
	for _, event := range events {
		now := event.Object.(*unstructured.Unstructured)
		r := revision{Type: string(event.Type), ResourceVersion: now.GetResourceVersion(), First: before == nil && event.Type != watch.Added}
		switch {
		case event.Type == watch.Deleted:
			before = nil
		case before == nil:
			r.Managers, before = managers(nil, now), now
		default:
			r.Managers = managers(before, now)
			r.Changes = changes("", content(before), content(now))
			before = now
		}
		revisions = append(revisions, r)
	}
	return revisions
}

// content returns an object without what changes in every revision.
func content(o *unstructured.Unstructured) map[string]any {
	c := o.DeepCopy()
	c.SetManagedFields(nil)
	c.SetResourceVersion("")
	return c.Object
}

// managers returns who has changed fields between two states, according to managedFields.
func managers(before, now *unstructured.Unstructured) (names []string) {
	var old []metav1.ManagedFieldsEntry
	if before != nil {
		old = before.GetManagedFields()
	}
	for _, entry := range now.GetManagedFields() {
		if !slices.ContainsFunc(old, func(o metav1.ManagedFieldsEntry) bool { return reflect.DeepEqual(o, entry) }) {
			name := entry.Manager + " (" + string(entry.Operation)
			if entry.Subresource != "" {
				name += " of " + entry.Subresource
			}
			names = append(names, name+")")
		}
	}
	return names
}

// changes returns the fields that differ, in order.
func changes(path string, from, to any) []change {
	a, isMap := from.(map[string]any)
	b, bothMaps := to.(map[string]any)
	if !isMap || !bothMaps {
		if reflect.DeepEqual(from, to) {
			return nil
		}
		return []change{{strings.TrimPrefix(path, "."), from, to}}
	}
	names := map[string]bool{}
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	ordered := make([]string, 0, len(names))
	for name := range names {
		ordered = append(ordered, name)
	}
	slices.Sort(ordered)
	var found []change
	for _, name := range ordered {
		next := path + "." + name
		if strings.ContainsAny(name, "./") {
			next = path + "[" + name + "]"
		}
		found = append(found, changes(next, a[name], b[name])...)
	}
	return found
}

func writeRevisions(w io.Writer, revisions []revision) error {
	for _, r := range revisions {
		plain.Fprintf(w, "%s  %s", r.ResourceVersion, r.Type)
		if len(r.Managers) > 0 {
			plain.Fprintf(w, "  by %s", strings.Join(r.Managers, ", "))
		}
		if r.First {
			fmt.Fprint(w, "  (the oldest state in the history)")
		}
		fmt.Fprintln(w)
		for _, c := range r.Changes {
			plain.Fprintf(w, "  %s: %s -> %s\n", c.Path, value(c.From), value(c.To))
		}
	}
	return nil
}

// value returns a field's value in one line.
func value(v any) string {
	if v == nil {
		return "(none)"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return plain.Escape(fmt.Sprint(v))
	}
	return plain.Escape(string(raw))
}
