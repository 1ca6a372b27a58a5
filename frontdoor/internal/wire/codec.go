package wire

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Codec holds what all requests share: names, Protobuf messages, the cache of encoded
// forms, and buffers. It is safe for concurrent use.
type Codec struct {
	vocabulary vocabulary.Vocabulary
	// standardProtobuf is the media type of standard clients, which is accepted in all vocabularies: they send it whatever
	// the names of groups are, and the messages are the same.
	standardProtobuf string
	metaGroup        string
	release          release.Release
	messages         *protobuf.Registry
	cbor             bool
	*cache
	buffers sync.Pool // of *[]byte
	now     func() time.Time
}

// Config configures a Codec.
type Config struct {
	Vocabulary vocabulary.Vocabulary
	Release    release.Release
	// CacheBytes limits the cache of encoded forms; 0 means 96 MiB.
	CacheBytes int
	// CBOR turns on that encoding.
	CBOR bool
	// Now is the clock for ages in Tables; nil means time.Now.
	Now func() time.Time
}

// New returns a Codec.
func New(cfg Config) *Codec {
	if cfg.CacheBytes == 0 {
		cfg.CacheBytes = 96 << 20
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Codec{
		vocabulary:       cfg.Vocabulary,
		standardProtobuf: vocabulary.K8s().Protobuf,
		metaGroup:        cfg.Vocabulary.Group("meta."),
		release:          cfg.Release,
		messages:         protobuf.NewRegistry(cfg.Vocabulary),
		cbor:             cfg.CBOR,
		cache:            newCache(cfg.CacheBytes),
		now:              cfg.Now,
	}
}

func kindOf(t *catalogue.Type) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}
}

// metaKind returns a kind of the meta group.
func (c *Codec) metaKind(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: c.metaGroup, Version: version, Kind: kind}
}

// largestKept is the capacity above which a buffer is not reused.
const largestKept = 1 << 20

func (c *Codec) buffer() *[]byte {
	if b, ok := c.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, chunk+chunk/2)
	return &b
}

func (c *Codec) recycle(b *[]byte) {
	if cap(*b) <= largestKept {
		*b = (*b)[:0]
		c.buffers.Put(b)
	}
}
