package layout

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// longestPath bounds the work of InOrder for each field.
const longestPath = 256

// InOrder sorts the findings of a strict decoder by where they are in a JSON text. A finding
// ends with the quoted path of its field, like duplicate field "spec.paused". A duplicate
// field is where the field is for the second time. Findings that are nowhere come last, and findings with a very
// long path keep their order.
func InOrder(findings []string, text []byte) {
	if len(findings) < 2 {
		return
	}
	o := order{decoder: json.NewDecoder(bytes.NewReader(text)), at: map[string]int64{}, fields: map[string]bool{}, within: map[string]bool{"": true}}
	paths := map[string]string{}
	for _, finding := range findings {
		_, quoted, _ := strings.Cut(finding, `"`)
		path, err := strconv.Unquote(`"` + quoted)
		if err != nil || len(path) > longestPath {
			return
		}
		paths[finding] = path
		o.fields[path] = strings.HasPrefix(finding, "duplicate ") || o.fields[path]
		for i, c := range path {
			if c == '.' || c == '[' {
				o.within[path[:i]] = true
			}
		}
	}
	o.decoder.UseNumber()
	o.value("")
	slices.SortStableFunc(findings, func(a, b string) int {
		at, known := o.at[paths[a]]
		other, alsoKnown := o.at[paths[b]]
		switch {
		case known && alsoKnown:
			return int(at - other)
		case known:
			return -1
		case alsoKnown:
			return 1
		}
		return 0
	})
}

// order is a walk over a JSON text that finds the positions of fields.
type order struct {
	decoder *json.Decoder
	fields  map[string]bool // paths of the findings; true if their second position counts
	within  map[string]bool // paths of values that contain these
	at      map[string]int64
}

// value reads one value and reports whether the text goes on.
func (o *order) value(path string) bool {
	if !o.within[path] {
		var skipped json.RawMessage
		return o.decoder.Decode(&skipped) == nil
	}
	token, err := o.decoder.Token()
	if err != nil {
		return false
	}
	switch token {
	case json.Delim('{'):
		return o.object(path)
	case json.Delim('['):
		for i := 0; o.decoder.More(); i++ {
			if !o.value(path + "[" + strconv.Itoa(i) + "]") {
				return false
			}
		}
		_, err = o.decoder.Token()
	}
	return err == nil
}

func (o *order) object(path string) bool {
	if path != "" {
		path += "."
	}
	seen := map[string]bool{}
	for o.decoder.More() {
		token, err := o.decoder.Token()
		name, isText := token.(string)
		if err != nil || !isText {
			return false
		}
		if second, found := o.fields[path+name]; found && (seen[name] || !second) {
			if _, known := o.at[path+name]; !known {
				o.at[path+name] = o.decoder.InputOffset()
			}
		}
		seen[name] = true
		if !o.value(path + name) {
			return false
		}
	}
	_, err := o.decoder.Token()
	return err == nil
}
