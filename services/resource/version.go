package resource

import (
	"fmt"
	"strconv"
)

// FormatResourceVersion returns a revision as the API's opaque resourceVersion.
func FormatResourceVersion(revision int64) string { return strconv.FormatInt(revision, 10) }

// ParseVersion parses a resourceVersion of this service; "" and "0" are 0.
func ParseVersion(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(version, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is not a resourceVersion of this service", version)
	}
	return int64(revision), nil
}
