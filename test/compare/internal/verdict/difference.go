// Package verdict compares two responses, removes intended differences and prints the
// others. It sends no requests.
package verdict

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Difference is one difference between the responses to a request.
type Difference struct {
	// Kind is plural.version.group; Step is the case and its step.
	Kind, Step string
	// Path is the path of the difference: code, type, warnings or body and its fields.
	Path string
	// Portico and Peer are the two values as JSON; empty if absent.
	Portico, Peer string
}

// Compare returns the differences between two normalised responses. If the codes differ,
// this is the only difference, because everything else differs, too.
func Compare(kind, step string, portico, peer map[string]any) (all []Difference) {
	if portico["code"] != peer["code"] {
		return []Difference{{kind, step, "code", summary(portico), summary(peer)}}
	}
	found := func(path string, portico, peer any) {
		all = append(all, Difference{Kind: kind, Step: step, Path: path, Portico: text(portico), Peer: text(peer)})
	}
	named := isDiscovery(portico) && isDiscovery(peer)
	for _, key := range []string{"type", "warnings", "body"} {
		walk{found, named || key == "warnings"}.compare(key, field(portico, key), field(peer, key))
	}
	return all
}

// absent is the value of a missing field or item.
type absent struct{}

// walk compares two values. It calls found for each part that differs. Items of lists are
// compared by name if named is set, else by position.
type walk struct {
	found func(path string, portico, peer any)
	named bool
}

func (w walk) compare(path string, portico, peer any) {
	switch a := portico.(type) {
	case map[string]any:
		if b, ok := peer.(map[string]any); ok {
			for _, key := range keys(a, b) {
				w.compare(path+"."+key, field(a, key), field(b, key))
			}
			return
		}
	case []any:
		if b, ok := peer.([]any); ok {
			if w.named && w.compareNamed(path, a, b) {
				return
			}
			for i := range max(len(a), len(b)) {
				w.compare(fmt.Sprintf("%s[%d]", path, i), item(a, i), item(b, i))
			}
			return
		}
	}
	if text(portico) != text(peer) {
		w.found(path, portico, peer)
	}
}

func keys(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func field(o map[string]any, key string) any {
	if value, ok := o[key]; ok {
		return value
	}
	return absent{}
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return absent{}
}

// text returns a value as JSON, and "" for an absent one.
func text(value any) string {
	if _, ok := value.(absent); ok {
		return ""
	}
	content, _ := json.Marshal(value) // only JSON types
	return string(content)
}

// summary returns the code of a response and the message or causes of a Status.
func summary(answer map[string]any) string {
	code := fmt.Sprint(answer["code"])
	body, _ := answer["body"].(map[string]any)
	if body["kind"] != "Status" {
		return code
	}
	if message := body["message"]; message != nil {
		return fmt.Sprint(code, " ", message)
	}
	details, _ := body["details"].(map[string]any)
	return code + " " + text(details["causes"])
}
