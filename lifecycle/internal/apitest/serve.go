package apitest

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/services/resource"
)

// ServeHTTP responds like the real API.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.Refuse != nil {
		if code := a.Refuse(r); code != 0 {
			http.Error(w, http.StatusText(code), code)
			return
		}
	}
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		answer(w, a.discover(r.URL.Path == "/api"), nil)
		return
	}
	k, _, t, ok := a.parse(r.URL.Path)
	body, err := io.ReadAll(r.Body)
	switch {
	case !ok || err != nil:
		http.NotFound(w, r)
	case a.otherDefinition(r, k) != nil:
		answer(w, nil, a.otherDefinition(r, k))
	case r.Method == http.MethodGet && r.URL.Query().Has("watch"):
		a.watch(w, r, k)
	case r.Method == http.MethodGet && k.name == "":
		answer(w, a.list(r, k, t), nil)
	case r.Method == http.MethodDelete && k.name == "":
		answer(w, a.deleteAll(k, body), nil)
	default:
		o, err := a.one(r.Method, k, t, body)
		answer(w, o, err)
	}
}

// otherDefinition returns the error of a request that selects objects by the UID of a
// definition, on a path of another definition or of a built-in type.
func (a *API) otherDefinition(r *http.Request, k key) error {
	uid, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), resource.DefinitionUID+"=")
	if !ok {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, o := range a.objects {
		if at.resource.Resource == "customresourcedefinitions" && at.name == k.resource.GroupResource().String() {
			if string(o.GetUID()) == uid {
				return nil
			}
			return apierrors.NewConflict(k.resource.GroupResource(), "", errors.New("of another definition"))
		}
	}
	return apierrors.NewBadRequest("field label not supported: " + resource.DefinitionUID)
}

func answer(w http.ResponseWriter, value any, err error) {
	w.Header().Set("Content-Type", "application/json")
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		s.Kind, s.APIVersion = "Status", "v1"
		w.WriteHeader(int(s.Code))
		value = s
	}
	_ = json.NewEncoder(w).Encode(value)
}

// one serves requests about one object.
func (a *API) one(method string, k key, t Type, body []byte) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var sent map[string]any
	if err := json.Unmarshal(body, &sent); len(body) > 0 && err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if method == http.MethodPost {
		return a.create(k, t, sent)
	}
	o := a.objects[k]
	if o == nil {
		return nil, apierrors.NewNotFound(k.resource.GroupResource(), k.name)
	}
	switch method {
	case http.MethodPatch:
		sent = merge(o.DeepCopy().Object, sent)
		fallthrough
	case http.MethodPut:
		next := &unstructured.Unstructured{Object: sent}
		if version := next.GetResourceVersion(); version != "" && version != o.GetResourceVersion() || next.GetUID() != o.GetUID() {
			return nil, apierrors.NewConflict(k.resource.GroupResource(), k.name, errors.New("the object has been modified"))
		}
		a.storeOrRemove(k, next)
		return next, nil
	case http.MethodDelete:
		return o, a.delete(k, o, body)
	}
	return o, nil
}

func (a *API) create(k key, t Type, sent map[string]any) (any, error) {
	o := &unstructured.Unstructured{Object: sent}
	k.name = o.GetName()
	if a.objects[k] != nil {
		return nil, apierrors.NewAlreadyExists(k.resource.GroupResource(), k.name)
	}
	o.SetAPIVersion(t.GroupVersion().String())
	o.SetKind(t.Kind)
	o.SetNamespace(k.namespace)
	a.put(k, o)
	return o, nil
}

func (a *API) delete(k key, o *unstructured.Unstructured, body []byte) error {
	var options metav1.DeleteOptions
	if err := json.Unmarshal(body, &options); len(body) > 0 && err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if p := options.Preconditions; p != nil && (p.UID != nil && *p.UID != o.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion()) {
		return apierrors.NewConflict(k.resource.GroupResource(), k.name, errors.New("precondition failed"))
	}
	a.markDeleted(k, options.PropagationPolicy)
	return nil
}

func (a *API) deleteAll(k key, body []byte) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, each := range a.matching(k, func(*unstructured.Unstructured) bool { return true }) {
		at := k
		at.namespace, at.name = each.GetNamespace(), each.GetName()
		_ = a.delete(at, each, body)
	}
	return metav1.Status{Status: metav1.StatusSuccess}
}

func (a *API) list(r *http.Request, k key, t Type) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return map[string]any{"kind": t.Kind + "List", "apiVersion": t.GroupVersion().String(),
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(a.revision, 10)},
		"items":    a.matching(k, selected(r)),
	}
}

// selected parses the field selector of a request: by name, by the type of secrets, or
// everything.
func selected(r *http.Request) func(*unstructured.Unstructured) bool {
	field, value, _ := strings.Cut(r.URL.Query().Get("fieldSelector"), "=")
	return func(o *unstructured.Unstructured) bool {
		switch field {
		case "metadata.name":
			return o.GetName() == value
		case "type":
			return o.Object["type"] == value
		}
		return true
	}
}

func (a *API) matching(k key, match func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	found := []*unstructured.Unstructured{}
	for at, o := range a.objects {
		if at.resource == k.resource && (k.namespace == "" || k.namespace == at.namespace) && match(o) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(x, y *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	})
	return found
}

// watch sends the changes after a revision.
func (a *API) watch(w http.ResponseWriter, r *http.Request, k key) {
	revision, _ := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	match := selected(r)
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	for {
		a.mu.Lock()
		news, history := a.news, a.history
		a.mu.Unlock()
		for _, c := range history {
			if c.revision <= revision || c.resource != k.resource || !match(c.object) {
				continue
			}
			if err := json.NewEncoder(w).Encode(map[string]any{"type": c.event, "object": c.object.Object}); err != nil {
				return
			}
			revision = c.revision
		}
		w.(http.Flusher).Flush()
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}

// merge applies a merge patch.
func merge(into, patch map[string]any) map[string]any {
	for field, value := range patch {
		inner, isObject := value.(map[string]any)
		old, wasObject := into[field].(map[string]any)
		switch {
		case value == nil:
			delete(into, field)
		case isObject && wasObject:
			into[field] = merge(old, inner)
		default:
			into[field] = value
		}
	}
	return into
}
