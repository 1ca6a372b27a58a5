package audit

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Bounds of what an event quotes, in bytes. A line that is longer than a file of the log could not be written, and
// a client that can make events long would not be in the log.
const (
	// maxText bounds a logged user agent, and each part of a path, maxURI a URI, and maxMessage the
	// message of an error.
	maxText    = 1 << 10
	maxURI     = 64 << 10
	maxMessage = 8 << 10
	// maxAnnotation bounds the value of an annotation, and maxAnnotated all of an event: more than those that admission
	// returns.
	maxAnnotation = 10 << 10
	maxAnnotated  = 96 << 10
	// maxUser bounds the names of a user and of its groups and extra values.
	maxUser = 64 << 10
	// maxLine bounds a line, encoded: with the end of a chain it fits into the smallest file, which has a megabyte.
	maxLine = 960 << 10
)

// bounded truncates a text that the client controls.
func bounded(text string, to int) string {
	if len(text) <= to {
		return text
	}
	return strings.ToValidUTF8(text[:to], "") + "...TRUNCATED"
}

// bounded truncates the parts of a path that does not name what exists.
func (r *ObjectRef) bounded() *ObjectRef {
	if r == nil || len(r.Resource)+len(r.Namespace)+len(r.Name)+len(r.APIGroup)+len(r.APIVersion)+len(r.Subresource) <= maxText {
		return r
	}
	return &ObjectRef{Resource: bounded(r.Resource, maxText), Namespace: bounded(r.Namespace, maxText), Name: bounded(r.Name, maxText),
		APIGroup: bounded(r.APIGroup, maxText), APIVersion: bounded(r.APIVersion, maxText), Subresource: bounded(r.Subresource, maxText)}
}

// bounded leaves out the groups and extra values of a user that exceed maxUser together.
func (u user) bounded() user {
	left := maxUser
	fits := func(text string) bool {
		left -= len(text)
		return left >= 0
	}
	short := user{Username: bounded(u.Username, maxURI/4), UID: bounded(u.UID, maxText)}
	left -= len(short.Username) + len(short.UID)
	for i, group := range u.Groups {
		if !fits(group) {
			short.Groups = append(u.Groups[:i:i], "...TRUNCATED")
			return short
		}
	}
	short.Groups = u.Groups
	for _, key := range slices.Sorted(maps.Keys(u.Extra)) {
		for _, value := range u.Extra[key] {
			if !fits(key + value) {
				return short
			}
			if short.Extra == nil {
				short.Extra = map[string][]string{}
			}
			short.Extra[key] = append(short.Extra[key], value)
		}
	}
	return short
}

// boundedNotes returns annotations that together have at most maxAnnotated bytes.
func boundedNotes(all map[string]string) map[string]string {
	total := 0
	for key, value := range all {
		total += len(key) + min(len(value), maxAnnotation)
	}
	short := all
	if total > maxAnnotated {
		short = map[string]string{}
		total = 0
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if total += len(key) + min(len(all[key]), maxAnnotation); total > maxAnnotated {
				break
			}
			short[key] = all[key]
		}
	}
	for key, value := range short {
		short[key] = bounded(value, maxAnnotation)
	}
	return short
}

// markTruncated marks an event from which something is left out.
func (l *Log) markTruncated(e *event) {
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	group, _, _ := strings.Cut(l.apiVersion, "/")
	e.Annotations[group+"/truncated"] = "true"
}

// line returns the line of an event. One that would have more bytes than most loses first its bodies, then everything that is not
// who did what when.
func (l *Log) line(e *event, most int) []byte {
	line := marshal(e)
	if len(line) <= most {
		return line
	}
	e.RequestObject, e.ResponseObject = nil, nil
	l.markTruncated(e)
	if line = marshal(e); len(line) <= most {
		return line
	}
	e.Annotations, e.RequestURI = nil, bounded(e.RequestURI, maxText)
	e.User = user{Username: bounded(e.User.Username, maxText), UID: e.User.UID}
	if i := e.ImpersonatedUser; i != nil {
		e.ImpersonatedUser = &user{Username: bounded(i.Username, maxText), UID: i.UID}
	}
	l.markTruncated(e)
	return marshal(e)
}

// marshal returns an event as JSON. No field can fail to marshal.
func marshal(e *event) []byte {
	line, _ := json.Marshal(e)
	return line
}
