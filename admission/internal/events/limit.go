package events

import (
	"fmt"
	"slices"

	"github.com/portico-platform/portico/admission/internal/config"
)

// The types of limits.
const (
	Server          = "Server"
	Namespace       = "Namespace"
	User            = "User"
	SourceAndObject = "SourceAndObject"
)

const (
	// defaultCacheSize is the number of buckets of a limit that does not name one.
	defaultCacheSize = 4096
	// maxCacheSize bounds the memory of a limit to about 200 MiB.
	maxCacheSize = 1 << 20
)

// Limit is a limit on the rate of events.
type Limit struct {
	Type string `json:"type"`
	// QPS is how many events a second are let through once Burst events have been.
	QPS   int32 `json:"qps"`
	Burst int32 `json:"burst"`
	// CacheSize is how many buckets are kept; a bucket that is dropped is full again.
	CacheSize int32 `json:"cacheSize"`
}

// Parse reads the configuration of the plugin.
func Parse(d config.Document) ([]Limit, error) {
	var read struct {
		APIVersion string  `json:"apiVersion"`
		Kind       string  `json:"kind"`
		Limits     []Limit `json:"limits"`
	}
	if err := d.DecodeVersion(&read, config.Version{Group: "eventratelimit.admission.", Version: "v1alpha1", Kind: "Configuration"}); err != nil {
		return nil, err
	}
	if len(read.Limits) == 0 {
		return nil, d.Invalid("limits", "must not be empty")
	}
	for i, limit := range read.Limits {
		field := fmt.Sprintf("limits[%d].", i)
		switch types := []string{Server, Namespace, User, SourceAndObject}; {
		case !slices.Contains(types, limit.Type):
			return nil, d.Invalid(field+"type", "unsupported value %q: supported values: %q", limit.Type, types)
		case limit.Burst <= 0:
			return nil, d.Invalid(field+"burst", "invalid value %d: must be positive", limit.Burst)
		case limit.QPS <= 0:
			return nil, d.Invalid(field+"qps", "invalid value %d: must be positive", limit.QPS)
		case limit.Type == Server:
		case limit.CacheSize < 0:
			return nil, d.Invalid(field+"cacheSize", "invalid value %d: must not be negative", limit.CacheSize)
		case limit.CacheSize > maxCacheSize:
			return nil, d.Invalid(field+"cacheSize", "invalid value %d: must not be more than %d", limit.CacheSize, maxCacheSize)
		}
	}
	return read.Limits, nil
}
