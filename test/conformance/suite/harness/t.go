package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// T is handed to a running check.
type T struct {
	*Server
	ctx      context.Context
	check    *Check
	cleanups []func()

	mu   sync.Mutex
	ns   string
	last string // the last exchange, for failure texts
}

type failure struct{ text string }
type skip struct{ text string }

// Failf ends the check as failed; the last exchange with the server is added.
func (t *T) Failf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.mu.Lock()
	if t.last != "" && !strings.Contains(text, t.last) {
		text += "; last exchange: " + t.last
	}
	t.mu.Unlock()
	panic(failure{text})
}

// Skipf ends the check as skipped.
func (t *T) Skipf(format string, args ...any) { panic(skip{fmt.Sprintf(format, args...)}) }

// True fails unless ok; the text says what was expected.
func (t *T) True(ok bool, expected string, args ...any) {
	if !ok {
		t.Failf("expected "+expected, args...)
	}
}

// Eq fails unless got equals want (a string is taken in the vocabulary in use;
// whole numbers compare with JSON numbers).
func (t *T) Eq(what string, got, want any) {
	if !reflect.DeepEqual(plain(got), plain(want)) {
		t.Failf("%s: expected %s, got %s", what, show(plain(want)), show(got))
	}
}

// Ne fails if got equals bad.
func (t *T) Ne(what string, got, bad any) {
	if reflect.DeepEqual(plain(got), plain(bad)) {
		t.Failf("%s: expected something other than %s", what, show(got))
	}
}

// Contains fails unless text contains part (in the vocabulary in use).
func (t *T) Contains(what, text, part string) {
	if !strings.Contains(text, N(part)) {
		t.Failf("%s: expected a text containing %q, got %q", what, N(part), text)
	}
}

// SameSet fails unless the two lists hold the same strings in any order.
func (t *T) SameSet(what string, got []string, want ...string) {
	for i := range want {
		want[i] = N(want[i])
	}
	a, b := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(a, b) {
		t.Failf("%s: expected %q in any order, got %q", what, b, a)
	}
}

// Includes fails unless list holds every one of want.
func (t *T) Includes(what string, list []string, want ...string) {
	for _, w := range want {
		if !slices.Contains(list, N(w)) {
			t.Failf("%s: expected %q among %q", what, N(w), list)
		}
	}
}

// Until polls until cond holds or d has passed.
func (t *T) Until(d time.Duration, expected string, cond func() bool) {
	for end := time.Now().Add(d); !cond(); {
		if time.Now().After(end) {
			t.Failf("expected within %v: %s", d, expected)
		}
		t.Sleep(150 * time.Millisecond)
	}
}

// Sleep waits, or ends the check when its deadline passes.
func (t *T) Sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.ctx.Done():
		t.Failf("the check ran past its deadline")
	}
}

// Cleanup registers f to run when the check has ended.
func (t *T) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// Name returns a unique name that starts with prefix.
func (t *T) Name(prefix string) string { return prefix + "-" + RandomID(6) }

// RandomID returns n characters of [a-z0-9].
func RandomID(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

// plain turns a value into its JSON form for comparison.
func plain(v any) any {
	switch x := v.(type) {
	case string:
		return N(x)
	case nil, bool, float64:
		return x
	}
	b, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var p any
	if json.Unmarshal([]byte(N(string(b))), &p) != nil {
		return v
	}
	return p
}

func show(v any) string {
	if b, err := json.Marshal(v); err == nil {
		return short(string(b), 300)
	}
	return short(fmt.Sprint(v), 300)
}

func short(s string, n int) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "?")
	if len(s) > n {
		s = s[:n] + "…"
	}
	return s
}

// ---- requests ----

// Identity is who a request comes from. The zero value is anonymous.
type Identity struct {
	Token  string
	client *http.Client // with a client certificate
	Name   string
}

// Anonymous carries no credentials.
var Anonymous = Identity{}

type request struct {
	who         Identity
	header      http.Header
	contentType string
	timeout     time.Duration
}

// Opt changes one request.
type Opt func(*request)

// As sends the request as another identity than the administrator.
func As(id Identity) Opt { return func(r *request) { r.who = id } }

// Header adds a request header.
func Header(name, value string) Opt {
	return func(r *request) { r.header[http.CanonicalHeaderKey(name)] = append(r.header.Values(name), N(value)) }
}

// Accept sets the Accept header.
func Accept(types string) Opt { return Header("Accept", types) }

// Type sets the Content-Type header.
func Type(mediaType string) Opt { return func(r *request) { r.contentType = N(mediaType) } }

// Impersonate acts as another user with groups.
func Impersonate(user string, groups ...string) Opt {
	return func(r *request) {
		r.header.Set("Impersonate-User", N(user))
		for _, g := range groups {
			r.header.Add("Impersonate-Group", N(g))
		}
	}
}

// Resp is a received response.
type Resp struct {
	t       *T
	request string
	Code    int
	Header  http.Header
	Raw     []byte
}

// Do sends a request. A body may be an Obj, a YAML text (sent as JSON unless
// the content type says YAML), or []byte (sent as it is).
func (t *T) Do(method, path string, body any, opts ...Opt) *Resp {
	res, cancel := t.open(method, path, body, opts...)
	defer cancel()
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	r := &Resp{t: t, request: method + " " + N(path), Code: res.StatusCode, Header: res.Header, Raw: raw}
	t.note("%s -> %d %s", r.request, r.Code, short(string(raw), 400))
	if err != nil {
		t.Failf("%s: reading the response: %v", r.request, err)
	}
	return r
}

// open sends a request and returns the response with its body still unread.
func (t *T) open(method, path string, body any, opts ...Opt) (*http.Response, context.CancelFunc) {
	rq := &request{who: t.Admin(), header: http.Header{}, timeout: 30 * time.Second}
	for _, o := range opts {
		o(rq)
	}
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		reader = bytes.NewReader(b)
	case string:
		text := []byte(N(b))
		if !strings.Contains(rq.contentType, "yaml") {
			var err error
			if text, err = yaml.YAMLToJSON(text); err != nil {
				panic(fmt.Sprintf("suite: bad YAML in check %s: %v", t.check.ID, err))
			}
		}
		reader = bytes.NewReader(text)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			panic(err)
		}
		reader = strings.NewReader(N(string(text)))
	}
	ctx, cancel := context.WithTimeout(t.ctx, rq.timeout)
	req, err := http.NewRequestWithContext(ctx, method, t.Server.URL+N(path), reader)
	if err != nil {
		cancel()
		t.Failf("%s %s: %v", method, path, err)
	}
	req.Header = rq.header
	if rq.contentType == "" && reader != nil {
		rq.contentType = "application/json"
	}
	if rq.contentType != "" {
		req.Header.Set("Content-Type", rq.contentType)
	}
	if rq.who.Token != "" {
		req.Header.Set("Authorization", "Bearer "+rq.who.Token)
	}
	client := rq.who.client
	if client == nil {
		client = plainClient
	}
	res, err := client.Do(req)
	if err != nil {
		cancel()
		t.note("%s %s -> no response", method, N(path))
		if ended := t.Server.Ended(); ended != "" {
			t.Failf("%s %s: the server process has ended: %s", method, N(path), ended)
		}
		t.Failf("%s %s: expected a response, got %v", method, N(path), err)
	}
	return res, cancel
}

func (t *T) note(format string, args ...any) {
	t.mu.Lock()
	t.last = fmt.Sprintf(format, args...)
	t.mu.Unlock()
}

func (t *T) GET(path string, opts ...Opt) *Resp { return t.Do("GET", path, nil, opts...) }
func (t *T) POST(path string, body any, opts ...Opt) *Resp {
	return t.Do("POST", path, body, opts...)
}
func (t *T) PUT(path string, body any, opts ...Opt) *Resp { return t.Do("PUT", path, body, opts...) }
func (t *T) DELETE(path string, body any, opts ...Opt) *Resp {
	return t.Do("DELETE", path, body, opts...)
}

// Patch media types.
const (
	ApplyPatch     = "application/apply-patch+yaml"
	MergePatch     = "application/merge-patch+json"
	JSONPatch      = "application/json-patch+json"
	StrategicPatch = "application/strategic-merge-patch+json"
)

// PATCH sends a patch of the media type given.
func (t *T) PATCH(mediaType, path string, body any, opts ...Opt) *Resp {
	return t.Do("PATCH", path, body, append([]Opt{Type(mediaType)}, opts...)...)
}

// Apply sends a server-side apply; options after the manager are query
// parameters such as "force=true".
func (t *T) Apply(manager, path string, config any, params ...string) *Resp {
	q := append([]string{"fieldManager=" + manager}, params...)
	return t.PATCH(ApplyPatch, path+"?"+strings.Join(q, "&"), config)
}

// Is fails unless the status code is one of codes.
func (r *Resp) Is(codes ...int) *Resp {
	if !slices.Contains(codes, r.Code) {
		want := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(codes)), " or "), "[]")
		r.fail("expected status %s", want)
	}
	return r
}

// fail ends the check with what was expected of this response, and what came.
func (r *Resp) fail(expected string, args ...any) {
	panic(failure{fmt.Sprintf("%s: %s, got %d: %s", r.request, fmt.Sprintf(expected, args...), r.Code, short(string(r.Raw), 400))})
}

// OK fails unless the status code is 200, 201 or 202.
func (r *Resp) OK() *Resp { return r.Is(200, 201, 202) }

// Made fails unless the response shows a created object: status 200 or 201, a
// name, a uid and a resourceVersion. It returns the object.
func (r *Resp) Made() Obj {
	o := r.Is(200, 201).Obj()
	if o.Name() == "" || o.UID() == "" || o.RV() == "" {
		r.fail("expected the created object with a name, a uid and a resourceVersion")
	}
	return o
}

// ClientError fails unless the status code is 4xx.
func (r *Resp) ClientError() *Resp {
	if r.Code < 400 || r.Code > 499 {
		r.fail("expected a 4xx status")
	}
	return r
}

// Obj decodes the JSON body.
func (r *Resp) Obj() Obj {
	o := Obj{}
	if err := json.Unmarshal(r.Raw, &o); err != nil {
		r.t.Failf("%s: expected a JSON object in the body (status %d), got %s", r.request, r.Code, short(string(r.Raw), 200))
	}
	return o
}

// Status fails unless the response has the code and a Status body that agrees,
// with the reason given ("" for any).
func (r *Resp) Status(code int, reason string) Obj {
	r.Is(code)
	o := r.Obj()
	r.t.Eq("kind of the error body", o.Str("kind"), "Status")
	r.t.Eq("status of the error body", o.Str("status"), "Failure")
	r.t.Eq("code of the error body", o.Num("code"), code)
	if reason != "" {
		r.t.Eq("reason of the error body", o.Str("reason"), reason)
	}
	return o
}

// ContentType returns the media type of the response without parameters.
func (r *Resp) ContentType() string {
	m, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(m)
}

// ---- paths ----

// All returns the path of a collection, cluster-scoped or across all
// namespaces: All("pods"), All("apps/v1/deployments").
func All(resource string) string {
	i := strings.LastIndexByte(resource, '/')
	if i < 0 {
		return "/api/v1/" + resource
	}
	return "/apis/" + resource
}

// In returns the path of a collection in a namespace.
func In(ns, resource string) string {
	i := strings.LastIndexByte(resource, '/')
	if i < 0 {
		return "/api/v1/namespaces/" + ns + "/" + resource
	}
	return "/apis/" + resource[:i] + "/namespaces/" + ns + resource[i:]
}

// In returns the path of a collection in the check's own namespace.
func (t *T) In(resource string) string { return In(t.NS(), resource) }

// NS returns the check's own namespace, made at the first call.
func (t *T) NS() string {
	t.mu.Lock()
	ns := t.ns
	t.mu.Unlock()
	if ns == "" {
		ns = t.NewNS()
		t.mu.Lock()
		t.ns = ns
		t.mu.Unlock()
	}
	return ns
}

// NewNS makes a further namespace.
func (t *T) NewNS() string {
	ns := t.Name(strings.ToLower(t.check.ID))
	t.POST("/api/v1/namespaces", YAML(`{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {ns: %s}}}`, ns, ns)).Made()
	return ns
}
