package ledger

import (
	"net/http"
	"strings"
)

// HeaderList returns the elements of a header that is a list, separated by commas: those within the bounds of Header.
// Callers parse it before they know the client.
func HeaderList(h http.Header, name string) string {
	values := h.Values(name)
	if len(values) == 0 {
		return ""
	}
	list := values[0]
	if len(values) > 1 {
		list = strings.Join(values[:min(len(values), Header.Values)], ",")
	}
	if int64(len(list)) > Header.Bytes {
		list = complete(list[:Header.Bytes])
	}
	for i, elements := 0, 0; i < len(list); i++ {
		if list[i] != ',' && list[i] != ';' {
			continue
		}
		if elements++; elements >= Header.Values {
			return complete(list[:i])
		}
	}
	return list
}

// complete returns a list without its last element, of which the end may be missing.
func complete(list string) string { return list[:max(0, strings.LastIndexByte(list, ','))] }
