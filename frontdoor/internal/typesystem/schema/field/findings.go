package field

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// OneOfYAML joins the findings of a YAML decoder, which come first and have lines, to one
// error, as in Kubernetes.
func OneOfYAML(findings []string) []string {
	n := 0
	for n < len(findings) && strings.HasPrefix(findings[n], "line ") {
		n++
	}
	if n == 0 {
		return findings
	}
	return append([]string{"yaml: unmarshal errors:\n  " + strings.Join(findings[:n], "\n  ")}, findings[n:]...)
}

// separators are the characters of paths that end the name of a field.
const separators = ".[]"

// maxListed limits the findings in a response: all of them in their order in a body, or else
// those of each kind.
const maxListed = 100

// Findings are what a strict request is refused for.
type Findings struct {
	Decoded []string // findings of the decoder
	Unknown []string // paths of unknown fields; List sorts them
	Patched bool     // the decoder has read a patch
	// Opaque reports whether a field of a body is inside of a value whose content is not reported.
	Opaque func(path []string) bool
	// Order sorts findings by where they are in the body; nil for a body that has no such order.
	Order func(findings []string)
}

// List returns the findings of the decoder and the unknown fields, up to maxListed.
func (f Findings) List() []string {
	slices.SortFunc(f.Unknown, comparePaths)
	all := slices.DeleteFunc(slices.Clone(f.Decoded[:min(len(f.Decoded), maxListed)]), func(finding string) bool {
		path, err := strconv.Unquote(strings.TrimPrefix(finding, "duplicate field "))
		return err == nil && !f.Patched && f.Opaque(strings.FieldsFunc(path, func(c rune) bool { return strings.ContainsRune(separators, c) }))
	})
	if !f.Patched && len(all) > 0 { // a field of a body that is unknown is not also a duplicate
		unknown := make(map[string]int, len(f.Unknown))
		for _, name := range f.Unknown {
			unknown[fmt.Sprintf("duplicate field %q", name)]++
		}
		all = slices.DeleteFunc(all, func(finding string) bool {
			unknown[finding]--
			return unknown[finding] >= 0
		})
	}
	unknown := f.Unknown
	if f.Order == nil {
		unknown = unknown[:min(len(unknown), maxListed)]
	}
	for _, name := range unknown {
		all = append(all, fmt.Sprintf("unknown field %q", name))
	}
	if f.Order != nil {
		f.Order(all)
		all = all[:min(len(all), maxListed)]
	}
	return all
}

// comparePaths compares two paths field by field: env[0] is before envFrom[0].
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return cmp.Compare(rank(a[i]), rank(b[i]))
		}
	}
	return cmp.Compare(len(a), len(b))
}

// rank returns what orders the characters of paths: separators come first.
func rank(c byte) int {
	if at := strings.IndexByte(separators, c); at >= 0 {
		return at - len(separators)
	}
	return int(c)
}
