package discovery

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/munnerz/goautoneg"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
)

const (
	mediaJSON = "application/json"
	mediaYAML = "application/yaml"
)

// document is one published document, generated once and kept compressed: large ones
// shrink tenfold, and nearly all clients accept gzip.
type document struct {
	mediaType string
	// as, with group and version, is the kind parameter that qualifies some media
	// types. A form with a profile is that of clauses with this profile only.
	as, group, version, profile string
	// sentAs is the media type of the response, if it differs from the requested one.
	sentAs string
	// legible documents are indented if the client requests it.
	legible bool
	// body returns the content, or the error of the context.
	body func(context.Context) (*body, error)
}

// body is a document's bytes.
type body struct {
	zipped []byte
	etag   string
	// plain and indented are its other forms, of which there is one copy while responses that have it are in progress:
	// a client may make any number of requests and read none of the responses.
	plain, indented *shared
}

// shared is a form that is made when a response needs it.
type shared struct {
	make func() ([]byte, error)
	mu   sync.Mutex
	made weak.Pointer[[]byte]
}

// get returns the form. It is valid for as long as a caller refers to it, and then collected.
func (s *shared) get() (*[]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made := s.made.Value(); made != nil {
		return made, nil
	}
	content, err := s.make()
	if err != nil {
		return nil, err
	}
	s.made = weak.Make(&content)
	return &content, nil
}

// newDocument returns a document that make generates on first use.
func newDocument(mediaType string, make func() ([]byte, error)) document {
	made := sync.OnceValues(func() (*body, error) {
		plain, err := make()
		if err != nil {
			return nil, err
		}
		return compressed(plain)
	})
	return document{mediaType: mediaType, body: func(context.Context) (*body, error) { return made() }}
}

// compressed returns a content.
func compressed(plain []byte) (*body, error) {
	return packed(func(to io.Writer) error {
		_, err := to.Write(plain)
		return err
	})
}

// packed returns the content that write writes, compressed as it is written.
func packed(write func(io.Writer) error) (*body, error) {
	var zipped bytes.Buffer
	w, sum, size := gzip.NewWriter(&zipped), sha256.New(), counter(0)
	if err := write(io.MultiWriter(w, sum, &size)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return newBody(bytes.Clone(zipped.Bytes()), textOf(sum.Sum(nil)), int(size)), nil
}

// counter counts the bytes that are written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// textOf returns a hash as documents show it.
func textOf(sum []byte) string { return strings.ToUpper(hex.EncodeToString(sum)) }

// etag returns the document's hash.
func (d document) etag() (string, error) {
	b, err := d.body(context.Background())
	if err != nil {
		return "", err
	}
	return b.etag, nil
}

// newJSON returns a JSON document that is indented if the client requests it.
func newJSON(value func() (any, error)) document {
	d := newDense(value)
	d.legible = true
	return d
}

// newDense returns a JSON document that is never indented.
func newDense(value func() (any, error)) document {
	return newDocument(mediaJSON, func() ([]byte, error) {
		v, err := value()
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	})
}

// message is an object that is also a Protobuf message.
type message interface {
	kruntime.Object
	Marshal() ([]byte, error)
}

// newNegotiated returns the forms of an object: JSON, YAML and the Protobuf envelope.
func newNegotiated(mediaProtobuf string, value func() message) []document {
	return []document{
		newJSON(func() (any, error) { return value(), nil }),
		newDocument(mediaYAML, func() ([]byte, error) { return yaml.Marshal(value()) }),
		newDocument(mediaProtobuf, func() ([]byte, error) {
			v := value()
			raw, err := v.Marshal()
			return protobuf.AppendEnvelope(nil, v.GetObjectKind().GroupVersionKind(), raw), err
		}),
	}
}

// newCBOR returns an object in CBOR.
func newCBOR(value func() message) document {
	return newDocument(cbor.Media, func() ([]byte, error) {
		plain, err := json.Marshal(value())
		if err != nil {
			return nil, err
		}
		return cbor.Append(nil, plain)
	})
}

// newBody returns a document that is kept compressed, of size bytes without compression.
func newBody(zipped []byte, etag string, size int) *body {
	b := &body{zipped: zipped, etag: etag}
	b.plain = &shared{make: func() ([]byte, error) {
		r, err := gzip.NewReader(bytes.NewReader(zipped))
		if err != nil {
			return nil, err
		}
		content := make([]byte, size)
		_, err = io.ReadFull(r, content)
		return content, err
	}}
	b.indented = &shared{make: func() ([]byte, error) {
		plain, err := b.plain.get()
		if err != nil {
			return nil, err
		}
		var indented bytes.Buffer
		err = json.Indent(&indented, *plain, "", "  ")
		return indented.Bytes(), err
	}}
	return b
}

// contentType returns the document's media type with its parameters.
func (d document) contentType() string {
	switch {
	case d.sentAs != "":
		return d.sentAs
	case d.as == "":
		return d.mediaType
	}
	return d.mediaType + ";g=" + d.group + ";v=" + d.version + ";as=" + d.as
}

// fits reports whether a clause of an Accept header matches the document.
func (d document) fits(clause goautoneg.Accept) bool {
	kind, subkind, _ := strings.Cut(d.mediaType, "/")
	return (clause.Type == kind || clause.Type == "*") && (clause.SubType == subkind || clause.SubType == "*") &&
		clause.Params["as"] == d.as && clause.Params["g"] == d.group && clause.Params["v"] == d.version &&
		(d.profile == "" || clause.Params["profile"] == d.profile)
}

// choose returns the form that the client prefers, by default the first one. It returns
// NotAcceptable (406) if no form matches the Accept header.
func choose(r *http.Request, forms []document) (document, error) {
	accept := ledger.HeaderList(r.Header, "Accept")
	if accept == "" {
		return forms[0], nil
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, form := range forms {
			if form.fits(clause) {
				return form, nil
			}
		}
	}
	offered := make([]string, len(forms))
	for i, form := range forms {
		offered[i] = form.contentType()
	}
	return document{}, &services.Status{Code: http.StatusNotAcceptable, Reason: services.ReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join(offered, ", ")}
}

// serve writes the negotiated form of a document, or NotModified (304) if the client has
// it.
func serve(w http.ResponseWriter, r *http.Request, forms []document) error {
	form, err := choose(r, forms)
	if err != nil {
		return err
	}
	b, err := form.body(r.Context())
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", form.contentType())
	if form.legible && wire.WantsPretty(r, r.URL.Query()) {
		content, err := b.indented.get()
		if err == nil {
			_, err = w.Write(*content)
		}
		runtime.KeepAlive(content)
		return err
	}
	header.Set("Etag", `"`+b.etag+`"`)
	header["Vary"] = []string{"Accept", "Accept-Encoding"}
	if r.URL.Query().Get("hash") == b.etag {
		// The path contains a hash of the content, so the response never expires.
		header.Set("Cache-Control", "public, immutable, max-age=31536000")
	}
	content := &b.zipped
	if takesGzip(r) {
		header.Set("Content-Encoding", "gzip")
	} else if content, err = b.plain.get(); err != nil {
		return err
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(*content))
	runtime.KeepAlive(content)
	return nil
}

func takesGzip(r *http.Request) bool {
	for _, clause := range goautoneg.ParseAccept(ledger.HeaderList(r.Header, "Accept-Encoding")) {
		if clause.Type == "gzip" || clause.Type == "*" {
			return clause.Q > 0
		}
	}
	return false
}
