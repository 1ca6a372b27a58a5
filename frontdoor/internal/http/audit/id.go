package audit

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// longestID bounds the audit ID that a client gives, in bytes: it goes into every answer
// and every line of the log.
const longestID = 64

// ID returns the audit ID of a request: the one that its client gives, without anything
// but visible ASCII characters and at most longestID long, or a new one when nothing is
// left of it.
func ID(given string) string {
	id := strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return -1
		}
		return c
	}, given[:min(len(given), longestID)])
	if id == "" {
		return string(uuid.NewUUID())
	}
	return id
}
