package extensions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery"
	"github.com/portico-platform/portico/services/ledger"
)

const (
	// readTimeout bounds reading the documents of one extension.
	readTimeout = 15 * time.Second
	// maxResources bounds the discovery document of one extension beside the bounds of its text, and maxDescribed
	// the number of extensions whose OpenAPI documents are kept. Together these have maxValues, which
	// take about 350 bytes each.
	maxResources = 2000
	maxDescribed = 64
	maxValues    = 400_000
)

// documents is what a front door has read of an extension.
type documents struct {
	readNext  time.Time
	reading   bool
	failures  int     // to read the list of resources, in a row
	slow      bool    // the last reading took long
	of        checked // what it was read of
	resources []metav1.APIResource
	stale     bool
	openAPI   *discovery.OpenAPI
	v2, v3    fetched
	values    int // of v2 and v3, as JSON
}

// fetched is a document with the ETag under which it was served.
type fetched struct {
	etag string
	body []byte
}

func (x *extension) startReading() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of != x.checked() {
		x.v2, x.v3, x.failures, x.slow = fetched{}, fetched{}, 0, false // another server
	}
	x.reading, x.of = true, x.checked()
}

// read reads the documents of one extension. What cannot be read stays as it was: the list
// of resources is then stale.
func (h *Handlers) read(ctx context.Context, x *extension, describe bool) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	resources, err := x.readResources(ctx)
	x.mu.Lock()
	openAPI, changed := x.openAPI, false
	x.mu.Unlock()
	if err == nil && describe {
		openAPI, changed = x.readOpenAPI(ctx, openAPI)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reading, x.readNext = false, h.now().Add(x.pause(err != nil))
	if err != nil {
		h.Log.Debug("reading the discovery document of an extension failed, retrying", "name", x.name, "error", err)
		resources = x.resources
	}
	if stale := err != nil; changed || stale != x.stale || !reflect.DeepEqual(resources, x.resources) {
		x.resources, x.stale, x.openAPI = resources, stale, openAPI
		h.signal()
	}
}

// readResources reads the list of resources of an extension.
func (x *extension) readResources(ctx context.Context) ([]metav1.APIResource, error) {
	var hold ledger.Hold
	defer hold.Release()
	document, err := x.fetch(ctx, source{path: "/apis/" + x.groupVersion(), text: ledger.ExtensionResources, hold: &hold})
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(document.body, &list); err != nil {
		return nil, err
	}
	switch {
	case list.GroupVersion != x.groupVersion():
		return nil, fmt.Errorf("the document of %s is for %q", x.groupVersion(), list.GroupVersion)
	case len(list.APIResources) > maxResources:
		return nil, fmt.Errorf("the document of %s lists more than %d resources", x.groupVersion(), maxResources)
	}
	kept, refused := safe(list.APIResources)
	if refused > 0 {
		x.handlers.Log.Debug("resources of an extension are left out: their names are no segments of a path", "name", x.name, "resources", refused)
	}
	return kept, nil
}

// readOpenAPI reads the OpenAPI documents of an extension, either of which may be missing.
// changed is false if they are those read before. One that is invalid is not kept.
func (x *extension) readOpenAPI(ctx context.Context, before *discovery.OpenAPI) (parsed *discovery.OpenAPI, changed bool) {
	x.mu.Lock()
	v2, v3 := x.v2, x.v3
	x.mu.Unlock()
	var hold ledger.Hold
	defer hold.Release()
	v2, changedV2 := x.refresh(ctx, source{path: "/openapi/v2", before: v2, text: ledger.ExtensionOpenAPI, hold: &hold})
	v3, changedV3 := x.refresh(ctx, source{path: "/openapi/v3/apis/" + x.groupVersion(), before: v3, text: ledger.ExtensionOpenAPI, hold: &hold})
	if !changedV2 && !changedV3 {
		return before, false
	}
	x.handlers.parsing.Lock()
	defer x.handlers.parsing.Unlock()
	err := x.fit(ledger.Values(v2.body) + ledger.Values(v3.body))
	if err == nil {
		parsed, err = discovery.ParseOpenAPI(x.group, x.version, v2.body, v3.body)
	}
	if parsed == nil {
		v2.body, v3.body = nil, nil // only the ETags, so that they are not read again before they change
	}
	x.mu.Lock()
	x.v2, x.v3 = v2, v3
	x.mu.Unlock()
	if err != nil {
		x.handlers.Log.Warn("the OpenAPI documents of an extension are not published", "name", x.name, "error", err)
	}
	return parsed, parsed != before
}

// fit counts the values of the documents of an extension, in place of those before. It returns an error if all
// extensions together then have too many.
func (x *extension) fit(values int) error {
	x.mu.Lock()
	x.values = 0
	x.mu.Unlock()
	all := values
	for _, other := range x.handlers.all() {
		other.mu.Lock()
		all += other.values
		other.mu.Unlock()
	}
	if all > maxValues {
		return fmt.Errorf("the documents of all extensions have more than %d values", maxValues)
	}
	x.mu.Lock()
	x.values = values
	x.mu.Unlock()
	return nil
}

// source is a document of an extension, and how much of it is read.
type source struct {
	path   string
	before fetched
	text   ledger.Text
	hold   *ledger.Hold
}

// refresh reads a document again. It stays as it was if it cannot be read, unless the
// extension has none.
func (x *extension) refresh(ctx context.Context, from source) (now fetched, changed bool) {
	now, err := x.fetch(ctx, from)
	switch {
	case err == nil:
		return now, true
	case errors.Is(err, errNone):
		return fetched{}, from.before.body != nil
	case errors.As(err, new(*ledger.ExcessError)):
		x.handlers.Log.Warn("an OpenAPI document of an extension cannot be read", "name", x.name, "path", from.path, "error", err)
	}
	return from.before, false
}

var (
	// errUnchanged is the error of a document that has not changed, and errNone that of one
	// that does not exist.
	errUnchanged = errors.New("the document has not changed")
	errNone      = errors.New("there is no such document")
)

// fetch reads a document as JSON. It returns errUnchanged if that is the one before.
func (x *extension) fetch(ctx context.Context, from source) (fetched, error) {
	before, header := from.before, http.Header{"Accept": {"application/json"}}
	if before.etag != "" {
		header.Set("If-None-Match", before.etag)
	}
	response, err := x.get(ctx, from.path, header)
	if err != nil {
		return fetched{}, err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotModified && before.etag != "":
		return fetched{}, errUnchanged
	case response.StatusCode == http.StatusNotFound:
		return fetched{}, errNone
	case response.StatusCode != http.StatusOK:
		return fetched{}, fmt.Errorf("bad status: %d", response.StatusCode)
	}
	pays := ledger.Account{Ledger: x.handlers.Ledger, Owner: ledger.Owner{Kind: ledger.Extension, Name: x.name}}
	body, err := pays.Read(from.hold, response.Body, from.text)
	if err != nil {
		return fetched{}, err
	}
	if bytes.Equal(body, before.body) {
		return fetched{}, errUnchanged
	}
	return fetched{response.Header.Get("Etag"), body}, nil
}

// Describe returns what discovery publishes of the extensions.
func (h *Handlers) Describe() []discovery.Extension {
	var all []discovery.Extension
	for _, x := range h.all() {
		x.mu.Lock()
		all = append(all, discovery.Extension{Group: x.group, Version: x.version, GroupPriority: x.groupPriority, VersionPriority: x.versionPriority,
			Resources: x.resources, Stale: x.stale || x.resources == nil || x.condition.status != "True", OpenAPI: x.openAPI})
		x.mu.Unlock()
	}
	return all
}

// Changed receives a value after what Describe returns has changed.
func (h *Handlers) Changed() <-chan struct{} { return h.changed }

func (h *Handlers) signal() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}
