// Package accept reads Accept headers: the media ranges in the order of the client's
// preference. It does not decide which of them the service has. It serves "Content
// negotiation" of the specification.
package accept

import (
	"cmp"
	"mime"
	"slices"
	"strconv"
	"strings"
)

// Range is one media range of an Accept header.
type Range struct {
	Media  string
	Params map[string]string
	weight float64
}

// Parse returns the ranges of an Accept header, preferred ones first. It skips invalid ones
// and those with weight zero.
func Parse(header string) []Range {
	var ranges []Range
	for element := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(element)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := params["q"]; ok {
			if weight, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		if weight > 0 {
			ranges = append(ranges, Range{media, params, weight})
		}
	}
	slices.SortStableFunc(ranges, func(a, b Range) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Count(a.Media, "*")-strings.Count(b.Media, "*"))
	})
	return ranges
}

// Names reports whether an Accept header has one of some media types, or */*. Unlike Parse,
// it ignores parameters, and application/* counts for nothing.
func Names(header string, media []string) bool {
	for element := range strings.SplitSeq(header, ",") {
		name, _, _ := strings.Cut(element, ";")
		if name = strings.TrimSpace(name); name == "*/*" || slices.Contains(media, name) {
			return true
		}
	}
	return false
}
