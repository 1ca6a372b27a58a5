package inventory

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/services/vocabulary"
)

// NewMetadataClient returns a client that reads only the metadata of objects of any
// type.
func NewMetadataClient(config *rest.Config, names vocabulary.Vocabulary) (dynamic.Interface, error) {
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return metadataOnly{next, partial(names)} })
	return dynamic.NewForConfig(own)
}

// partial accepts the metadata of objects, of lists and of watches.
func partial(names vocabulary.Vocabulary) string {
	return fmt.Sprintf("application/json;as=PartialObjectMetadataList;g=%[1]s;v=v1,application/json;as=PartialObjectMetadata;g=%[1]s;v=v1,application/json", names.Group("meta."))
}

// metadataOnly requests metadata in the API's own vocabulary. The standard metadata
// client supports only the original one.
type metadataOnly struct {
	next   http.RoundTripper
	accept string
}

func (m metadataOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", m.accept)
	return m.next.RoundTrip(r)
}
