// Package normal normalises the responses of two servers for comparison: values generated
// by the server, such as uids, times and addresses, become placeholders, and fields that
// Portico's documents do not have are removed. It never changes values that clients may
// depend on.
package normal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/compare/internal/openapi"
)

// Answer is the response of a server.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Names contains the placeholders of one case on one server. A generated value is named
// after the step in which it first appears. So a uid that stays the same has the same
// placeholder on both servers, and an additional step does not change the other names.
type Names struct {
	document *openapi.Document
	seen     map[string]map[string]string // by type (version, uid, address) and value
	step     string
	counts   map[string]int // new values of the step, by type
}

// NewNames returns placeholders for a case; document defines the fields to keep. Without one,
// all fields are kept.
func NewNames(document *openapi.Document) *Names {
	return &Names{document: document, seen: map[string]map[string]string{}}
}

// Tree returns the normalised answer to a step as a JSON value: its code, media
// type, warnings and body. parsed is the body before that, if it is one JSON object.
func (n *Names) Tree(step string, a Answer) (tree, parsed map[string]any) {
	n.step, n.counts = step, map[string]int{}
	tree = map[string]any{"code": fmt.Sprint(a.Code), "type": mediaType(a.Header.Get("Content-Type"))}
	if warnings := a.Header.Values("Warning"); len(warnings) > 0 {
		slices.Sort(warnings) // their order is that of the fields in the body
		all := make([]any, len(warnings))
		for i, w := range warnings {
			all[i] = w
		}
		tree["warnings"] = n.replace("", all)
	}
	values := decode(a)
	if len(values) == 1 {
		parsed, _ = values[0].(map[string]any)
		parsed = copyOf(parsed)
	}
	for i, value := range values {
		values[i] = n.body(value)
	}
	if len(values) == 1 {
		tree["body"] = values[0]
	} else {
		tree["body"] = values
	}
	return tree, parsed
}

// mediaType returns the media type without the character set.
func mediaType(header string) string {
	base, params, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	delete(params, "charset")
	return mime.FormatMediaType(base, params)
}

// decode returns the values of a body: one, or the events of a watch. A body that cannot
// be decoded is returned as a string.
func decode(a Answer) []any {
	base, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	switch base {
	case "application/json":
		decoder := json.NewDecoder(strings.NewReader(string(a.Body)))
		var values []any
		for {
			var value any
			if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
				return values
			} else if err != nil {
				return []any{string(a.Body)}
			}
			values = append(values, value)
		}
	case "application/yaml":
		var value any
		if yaml.Unmarshal(a.Body, &value) == nil {
			return []any{value}
		}
	case vocabulary.K8s().Protobuf:
		return []any{fromProtobuf(a.Body)}
	}
	return []any{string(a.Body)}
}

// fromProtobuf returns an object of a built-in kind as JSON.
func fromProtobuf(body []byte) any {
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return "of an unknown kind"
	}
	if err != nil {
		return "undecodable: " + err.Error()
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(decoded)
	if err != nil {
		return "undecodable: " + err.Error()
	}
	return roundTrip(fields)
}

func roundTrip(value any) (out any) {
	content, _ := json.Marshal(value) // only JSON types
	_ = json.Unmarshal(content, &out) // valid JSON
	return out
}

func copyOf(value map[string]any) map[string]any {
	out, _ := roundTrip(value).(map[string]any)
	return out
}

func (n *Names) body(value any) any {
	o, ok := value.(map[string]any)
	if !ok {
		return n.replace("", value)
	}
	if o["kind"] == "Status" {
		return n.replace("", status(o))
	}
	if inner, ok := o["object"].(map[string]any); ok && o["type"] != nil { // an event of a watch
		if meta, ok := inner["metadata"].(map[string]any); ok && o["type"] == "BOOKMARK" {
			meta["resourceVersion"] = "<version>"
		}
		o["object"] = n.body(inner)
		return o
	}
	if n.document != nil {
		n.prune(o)
	}
	sortOwners(o)
	sharedParameters(o)
	_, list := o["items"].([]any)
	if meta, ok := o["metadata"].(map[string]any); ok && (list || o["rows"] != nil) && meta["resourceVersion"] != nil {
		meta["resourceVersion"] = "<version>"
	}
	return n.replace("", o)
}

// status makes causes comparable independently of their order and duplicates.
func status(o map[string]any) map[string]any {
	details, _ := o["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	if what, found, ok := strings.Cut(fmt.Sprint(o["message"]), "strict decoding error: "); ok && len(causes) == 0 {
		all := strings.Split(found, ", ")
		slices.Sort(all)
		o["message"] = what + "strict decoding error: " + strings.Join(all, ", ")
	}
	if len(causes) == 0 {
		return o
	}
	slices.SortFunc(causes, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	byField, last := map[string]any{}, ""
	for _, c := range causes {
		if fmt.Sprint(c) == last {
			continue // both servers report some causes twice, but not always the same ones
		}
		last = fmt.Sprint(c)
		cause, _ := c.(map[string]any)
		key := fmt.Sprint(cause["field"], " ", cause["reason"])
		for _, taken := byField[key]; taken; _, taken = byField[key] {
			key += "+"
		}
		byField[key] = ordered(fmt.Sprint(cause["message"]))
	}
	details["causes"] = byField
	if o["reason"] == "Invalid" {
		delete(o, "message") // it repeats the causes
	}
	return o
}

// shown matches an object or a list as the value that a cause is about.
var shown = regexp.MustCompile(`^((?:Invalid|Duplicate|Unsupported) value: )([{\[].*[}\]])(: .*|$)`)

// ordered gives the fields of the value that a cause shows an order: that of the reference
// server is the one of its Go types.
func ordered(message string) string {
	if what, values, ok := strings.Cut(message, "supported values: "); ok {
		all := strings.Split(values, ", ")
		slices.Sort(all)
		return what + "supported values: " + strings.Join(all, ", ")
	}
	parts := shown.FindStringSubmatch(message)
	if parts == nil {
		return message
	}
	var value any
	if json.Unmarshal([]byte(parts[2]), &value) != nil {
		return message
	}
	sorted, _ := json.Marshal(value) // valid JSON
	return parts[1] + string(sorted) + parts[3]
}

// prune removes the fields that Portico's documents do not have.
func (n *Names) prune(o map[string]any) {
	kind := kindOf(o)
	if kind.Kind == "Table" {
		rows, _ := o["rows"].([]any)
		for _, r := range rows {
			row, _ := r.(map[string]any)
			if inner, ok := row["object"].(map[string]any); ok {
				n.prune(inner)
			}
		}
		return
	}
	schema := n.document.Of(kind)
	if items, ok := o["items"].([]any); ok {
		var item *openapi.Schema
		if schema != nil && schema.Properties["items"] != nil {
			item = schema.Properties["items"].Items
		}
		for _, i := range items {
			n.pruneOwners(i, item)
		}
	} else {
		n.pruneOwners(o, schema)
	}
	if schema != nil {
		n.document.Prune(o, schema)
	}
}

func (n *Names) pruneOwners(value any, schema *openapi.Schema) {
	o, _ := value.(map[string]any)
	meta, _ := o["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		delete(entry, "subresource")
		if fields, ok := entry["fieldsV1"].(map[string]any); ok {
			n.document.PruneOwned(fields, schema)
		}
	}
}

// sortOwners gives the managed fields of an object, of the items of a list and of the rows of
// a Table an order of their own: that of equal times is undefined.
func sortOwners(value any) {
	o, _ := value.(map[string]any)
	for _, list := range []string{"items", "rows"} {
		inner, _ := o[list].([]any)
		for _, i := range inner {
			sortOwners(i)
		}
	}
	sortOwnersOf(o["object"])
	sortOwnersOf(o)
}

func sortOwnersOf(value any) {
	o, _ := value.(map[string]any)
	meta, _ := o["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	order := func(entry any) string {
		e, _ := entry.(map[string]any)
		return fmt.Sprint(e["manager"], " ", e["operation"], " ", e["apiVersion"], " ", e)
	}
	slices.SortFunc(entries, func(a, b any) int { return strings.Compare(order(a), order(b)) })
}

func kindOf(o map[string]any) openapi.Kind {
	apiVersion, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	return openapi.Kind{Group: group, Version: version, Kind: kind}
}

var (
	uids      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	addresses = regexp.MustCompile(`\b10\.0\.0\.\d{1,3}\b`)
	generated = regexp.MustCompile(`\b(?i)(gen[-_])[a-z0-9]{5}\b`)
	quoted    = regexp.MustCompile(`(resourceVersion\\*":\\*")\d+`)
	currently = regexp.MustCompile(`(current: |in record \(|in object meta: )\d+`)
	moments   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+\d\d:\d\d)`)
)

// replace replaces generated values by placeholders.
func (n *Names) replace(key string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) { // placeholders are numbered in this order
			v[k] = n.replace(k, v[k])
		}
	case []any:
		for i, inner := range v {
			v[i] = n.replace(key, inner)
		}
	case string:
		return n.text(key, v)
	case float64:
		if (key == "nodePort" || key == "healthCheckNodePort") && v >= 30000 && v < 32768 && v != 30999 {
			return "<port>"
		}
	}
	return value
}

func (n *Names) text(key, text string) string {
	switch {
	case key == "resourceVersion" && text != "" && strings.Trim(text, "0123456789") == "":
		return n.first("version", text)
	case key == "continue" && text != "":
		return "<token>"
	}
	text = uids.ReplaceAllStringFunc(text, func(found string) string { return n.first("uid", found) })
	text = addresses.ReplaceAllStringFunc(text, func(found string) string { return n.first("address", found) })
	text = generated.ReplaceAllString(text, "$1<random>")
	text = quoted.ReplaceAllString(text, "$1<number>")
	text = currently.ReplaceAllString(text, "$1<number>")
	return moments.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339Nano, found)
		switch {
		case err != nil || time.Since(at).Abs() > 48*time.Hour:
			return found
		case strings.Contains(found, "."):
			return "<now, in fractions>"
		}
		return "<now>"
	})
}

// first returns the placeholder of a value, named after the step in which it first appears.
func (n *Names) first(what, value string) string {
	known := n.seen[what]
	if known == nil {
		known = map[string]string{}
		n.seen[what] = known
	}
	if known[value] == "" {
		n.counts[what]++
		known[value] = fmt.Sprintf("<%s %d of %s>", what, n.counts[what], n.step)
	}
	return known[value]
}
