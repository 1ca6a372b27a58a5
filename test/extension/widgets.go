package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// queued is how many events a watcher may be behind.
const queued = 1000

// widgets keeps widgets in memory.
type widgets struct {
	rest.TableConvertor
	changes *watch.Broadcaster

	mu       sync.Mutex
	objects  map[types.NamespacedName]*Widget
	history  []watch.Event
	revision int64
}

func newWidgets() *widgets {
	return &widgets{TableConvertor: rest.NewDefaultTableConvertor(widgetVersion.WithResource("widgets").GroupResource()),
		changes: watch.NewBroadcaster(queued, watch.DropIfChannelFull), objects: map[types.NamespacedName]*Widget{}}
}

func (w *widgets) New() runtime.Object     { return &Widget{} }
func (w *widgets) NewList() runtime.Object { return &WidgetList{} }
func (w *widgets) Destroy()                { w.changes.Shutdown() }
func (w *widgets) NamespaceScoped() bool   { return true }
func (w *widgets) GetSingularName() string { return "widget" }
func (w *widgets) ShortNames() []string    { return []string{"wd"} }
func notFound(name string) error {
	return errors.NewNotFound(widgetVersion.WithResource("widgets").GroupResource(), name)
}
func key(ctx context.Context, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: request.NamespaceValue(ctx), Name: name}
}

func (w *widgets) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found, ok := w.objects[key(ctx, name)]; ok {
		return found.DeepCopyObject(), nil
	}
	return nil, notFound(name)
}

func (w *widgets) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := &WidgetList{ListMeta: metav1.ListMeta{ResourceVersion: w.version()}, Items: []Widget{}}
	for _, found := range w.selected(ctx, o) {
		list.Items = append(list.Items, *found.DeepCopyObject().(*Widget))
	}
	return list, nil
}

// selected returns the widgets of the namespace that options select, ordered by name.
func (w *widgets) selected(ctx context.Context, o *internalversion.ListOptions) []*Widget {
	found := slices.DeleteFunc(slices.Collect(maps.Values(w.objects)), func(one *Widget) bool { return !matches(ctx, o, one) })
	slices.SortFunc(found, func(a, b *Widget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found
}

func matches(ctx context.Context, o *internalversion.ListOptions, one *Widget) bool {
	if namespace := request.NamespaceValue(ctx); namespace != "" && namespace != one.Namespace {
		return false
	}
	if o == nil {
		return true
	}
	return (o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(one.Labels))) &&
		(o.FieldSelector == nil || o.FieldSelector.Matches(fieldsOf(one)))
}

func (w *widgets) version() string { return strconv.FormatInt(w.revision, 10) }

// note keeps a change and tells the watchers. The caller holds the lock.
func (w *widgets) note(kind watch.EventType, one *Widget) {
	w.revision++
	one.ResourceVersion = w.version()
	if w.objects[types.NamespacedName{Namespace: one.Namespace, Name: one.Name}] = one; kind == watch.Deleted {
		delete(w.objects, types.NamespacedName{Namespace: one.Namespace, Name: one.Name})
	}
	event := watch.Event{Type: kind, Object: one.DeepCopyObject()}
	w.history = append(w.history, event)
	_ = w.changes.Action(event.Type, event.Object)
}

func (w *widgets) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, o *metav1.CreateOptions) (runtime.Object, error) {
	one := object.(*Widget)
	if validate != nil {
		if err := validate(ctx, one.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects[key(ctx, one.Name)] != nil {
		return nil, errors.NewAlreadyExists(widgetVersion.WithResource("widgets").GroupResource(), one.Name)
	}
	one.Namespace, one.UID, one.CreationTimestamp = request.NamespaceValue(ctx), uuid.NewUUID(), metav1.NewTime(time.Now())
	if len(o.DryRun) == 0 {
		w.note(watch.Added, one)
	}
	return one.DeepCopyObject(), nil
}

func (w *widgets) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, o *metav1.UpdateOptions) (runtime.Object, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, ok := w.objects[key(ctx, name)]
	if !ok {
		return nil, false, notFound(name)
	}
	object, err := info.UpdatedObject(ctx, before.DeepCopyObject())
	if err != nil {
		return nil, false, err
	}
	one := object.(*Widget)
	if one.ResourceVersion != "" && one.ResourceVersion != before.ResourceVersion {
		return nil, false, errors.NewConflict(widgetVersion.WithResource("widgets").GroupResource(), name, nil)
	}
	if update != nil {
		if err := update(ctx, one.DeepCopyObject(), before.DeepCopyObject()); err != nil {
			return nil, false, err
		}
	}
	one.UID, one.CreationTimestamp, one.Namespace = before.UID, before.CreationTimestamp, before.Namespace
	if len(o.DryRun) == 0 {
		w.note(watch.Modified, one)
	}
	return one.DeepCopyObject(), false, nil
}

func (w *widgets) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, o *metav1.DeleteOptions) (runtime.Object, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, ok := w.objects[key(ctx, name)]
	if !ok {
		return nil, false, notFound(name)
	}
	if validate != nil {
		if err := validate(ctx, one.DeepCopyObject()); err != nil {
			return nil, false, err
		}
	}
	if len(o.DryRun) == 0 {
		w.note(watch.Deleted, one)
	}
	return one.DeepCopyObject(), true, nil
}

func (w *widgets) Watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var missed []watch.Event
	if o == nil || o.ResourceVersion == "" || o.ResourceVersion == "0" {
		for _, found := range w.selected(ctx, o) {
			missed = append(missed, watch.Event{Type: watch.Added, Object: found.DeepCopyObject()})
		}
	} else {
		since, err := strconv.Atoi(o.ResourceVersion)
		if err != nil || since < 0 || since > len(w.history) {
			return nil, errors.NewBadRequest("invalid resourceVersion")
		}
		missed = w.history[since:]
	}
	all, err := w.changes.WatchWithPrefix(missed)
	if err != nil {
		return nil, err
	}
	return watch.Filter(all, func(e watch.Event) (watch.Event, bool) { return e, matches(ctx, o, e.Object.(*Widget)) }), nil
}
