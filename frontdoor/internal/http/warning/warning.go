// Package warning adds Warning headers to responses, within the limits of kube-apiserver.
// It serves "Other signals" of the specification.
package warning

import (
	"net/http"
	"strings"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	header = "Warning"
	// miscellaneous is the warn-code of persistent warnings (RFC 7234 section 5.5.7).
	miscellaneous = 299
	prefix        = `299 - "`
	// maxTotal is the limit on the text of all warnings of a response, in characters.
	maxTotal = 4096
	// maxEach is the limit on each warning once all of them exceed maxTotal.
	maxEach = 256
)

// List collects distinct warnings. The zero value is empty.
type List struct {
	texts []string
	seen  map[string]bool
}

// Add adds warnings. It drops those that exceed what a response can hold.
func (l *List) Add(texts ...string) {
	for _, text := range texts {
		if text == "" || l.seen[text] || len(l.texts) >= maxTotal {
			continue
		}
		if l.seen == nil {
			l.seen = map[string]bool{}
		}
		l.seen[text] = true
		l.texts = append(l.texts, text)
	}
}

// Texts returns the warnings in the order in which they were added. The caller must not
// change them.
func (l *List) Texts() []string { return l.texts[:len(l.texts):len(l.texts)] }

// Send adds Warning headers to those that the response already has. Text that is not
// UTF-8 or has control characters is dropped. If the texts exceed maxTotal, each is
// truncated to maxEach, and those after maxTotal is reached are dropped.
func Send(h http.Header, texts ...string) {
	var all List
	for _, sent := range h.Values(header) {
		all.Add(unquoted(sent))
	}
	all.Add(texts...)
	h.Del(header)
	limit := maxTotal // for each
	if !fit(all.texts) {
		limit = maxEach
	}
	left := maxTotal
	for _, text := range all.texts {
		text = shortened(text, limit)
		value, err := utilnet.NewWarningHeader(miscellaneous, "-", text)
		if err != nil {
			continue
		}
		if left <= 0 {
			return
		}
		left -= utf8.RuneCountInString(text)
		h.Add(header, value)
	}
}

// fit reports whether no text needs to be truncated.
func fit(texts []string) bool {
	total := 0
	for _, text := range texts {
		if total += utf8.RuneCountInString(text); total > maxTotal {
			return false
		}
	}
	return true
}

// shortened truncates a text to limit characters, including the ellipsis.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	count, cut := 0, 0
	for i := range text {
		if count == limit-1 {
			cut = i
		}
		if count++; count > limit {
			return text[:cut] + "…"
		}
	}
	return text
}

// unquoted returns the text of a header that Send has written.
func unquoted(value string) string {
	quoted, ok := strings.CutPrefix(value, prefix)
	if !ok {
		return ""
	}
	var text strings.Builder
	quoted = strings.TrimSuffix(quoted, `"`)
	for i := 0; i < len(quoted); i++ {
		if quoted[i] == '\\' && i+1 < len(quoted) {
			i++
		}
		text.WriteByte(quoted[i])
	}
	return text.String()
}
