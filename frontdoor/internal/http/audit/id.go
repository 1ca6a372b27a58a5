package audit

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// maxIDLength is the maximum length of a client's audit ID in bytes. The ID is in every
// response and every audit line.
const maxIDLength = 64

// ID returns the audit ID of a request: the client's, reduced to visible ASCII and cut
// to maxIDLength, or a new one if nothing is left of it.
func ID(given string) string {
	id := strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return -1
		}
		return c
	}, given[:min(len(given), maxIDLength)])
	if id == "" {
		return string(uuid.NewUUID())
	}
	return id
}
