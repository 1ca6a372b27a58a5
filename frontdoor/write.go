package frontdoor

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/merge"
	"github.com/portico-platform/portico/frontdoor/internal/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
)

// writing is a create, update or patch on its way: what the client sent, and the
// type of object that it sent.
type writing struct {
	*Request
	options writeOptions
	form    wire.Form
	// Body of a create or update; patch holds the bytes of a patch.
	body      wire.Body
	patch     []byte
	mediaType string
	// subject is how the body maps onto the stored object.
	subject subject
	// unconditional is true when another writer's change is no conflict for the
	// client: the request names no resourceVersion.
	unconditional bool
	created       bool
	warnings      []string
}

// write serves create, update and patch (sections "Path shapes" and "Dry-run"):
// one loop, from the top again when another writer was faster and the client did
// not ask for a certain version.
func (d *door) write(w http.ResponseWriter, r *Request) error {
	x, err := d.readWriting(w, r)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		object, err := d.attempt(r.Context(), x)
		if err == nil {
			return d.answerWrite(w, x, object)
		}
		if !x.mayRetry(err) || attempt >= writeAttempts || r.Context().Err() != nil {
			return err
		}
	}
}

// writeAttempts bounds the loop; every round lost means that somebody else's
// write went through.
const writeAttempts = 100

// mayRetry tells whether another writer's change, and nothing else, was in the way.
func (x *writing) mayRetry(err error) bool {
	switch {
	case errors.Is(err, errRaced):
		return true
	case services.IsReason(err, services.ReasonAlreadyExists):
		name, _ := strategy.Metadata(x.body.Object)["name"].(string)
		return x.Verb == "create" && name == "" || x.Verb == "patch" || x.Verb == "update"
	}
	return false
}

// errRaced is a compare-and-swap that lost although the client set no condition.
var errRaced = errors.New("another writer was faster")

// attempt goes once through the stages of a write.
func (d *door) attempt(ctx context.Context, x *writing) (services.Object, error) {
	c := &change{writing: x, now: time.Now()}
	for _, stage := range []func(context.Context, *change) error{
		d.loadCurrent, // the stored object, in the version of the request
		d.makeNext,    // what the client wants it to be
		d.complete,    // what the service decides, defaults, and admission's changes
		d.check,       // schema rules, then admission's word
	} {
		if err := stage(ctx, c); err != nil {
			return services.Object{}, err
		}
	}
	return d.store(ctx, c)
}

// change is one attempt at a write.
type change struct {
	*writing
	now     time.Time
	current services.Object // zero when there is none
	live    map[string]any  // current, decoded, in the version of the request; nil when there is none
	next    map[string]any
	nextRaw []byte // next as JSON, in the version of the request
}

func (c *change) exists() bool { return c.live != nil }

func (c *change) strategy(d *door) strategy.Write {
	return strategy.Write{Type: c.Type, Subresource: c.subresourceName(), Namespace: c.Namespace, User: c.User, Vocabulary: d.vocabulary, Now: c.now}
}

// loadCurrent reads the object that an update or patch changes. An object that is
// not there is NotFound, but for an apply, which creates it.
func (d *door) loadCurrent(ctx context.Context, c *change) error {
	if c.Verb == "create" {
		return nil
	}
	current, err := d.storage.Get(ctx, services.GetRequest{Key: c.key()})
	if services.IsReason(err, services.ReasonNotFound) && c.mayCreate() {
		return nil
	}
	if err != nil {
		return err
	}
	c.current = current
	c.live, err = d.decodeStored(current, c.Type)
	return err
}

// mayCreate tells whether the request creates the object when it is missing.
func (c *change) mayCreate() bool {
	return c.Subresource == nil && c.mediaType == merge.MediaTypeApply
}

// makeNext joins what the client sent with the current object.
func (d *door) makeNext(_ context.Context, c *change) error {
	var err error
	switch c.Verb {
	case "create":
		c.next = copyObject(c.body.Object)
		return c.checkCreate()
	case "update":
		c.next, err = c.subject.put(c.live, c.body.Object)
	case "patch":
		c.next, err = d.patched(c)
	}
	if err != nil {
		return err
	}
	return c.checkUpdate()
}

// complete lets the service and mutating admission finish the object.
func (d *door) complete(ctx context.Context, c *change) error {
	s := c.strategy(d)
	if c.exists() {
		s.PrepareUpdate(c.next, c.live)
	} else {
		s.PrepareCreate(c.next)
	}
	if err := d.prepare(c); err != nil {
		return err
	}
	raw, err := encodeObject(c.next)
	if err != nil {
		return err
	}
	c.nextRaw = raw
	review := c.review(d)
	response, err := d.admission.Mutate(ctx, review)
	if err != nil {
		return err
	}
	c.note(response)
	if response.Object != nil {
		if c.next, err = decodeObject(response.Object); err != nil {
			return err
		}
		if err := d.prepare(c); err != nil {
			return err
		}
	}
	if err := d.trackFields(c); err != nil {
		return err
	}
	c.nextRaw, err = encodeObject(c.next)
	return err
}

// check validates the final object.
func (d *door) check(ctx context.Context, c *change) error {
	if err := d.validate(c); err != nil {
		return err
	}
	response, err := d.admission.Validate(ctx, c.review(d))
	if err != nil {
		return err
	}
	c.note(response)
	return nil
}

// note keeps what admission had to say.
func (c *change) note(r services.AdmissionResponse) {
	c.warnings = append(c.warnings, r.Warnings...)
	for key, value := range r.AuditAnnotations {
		c.Audit.annotate(key, value)
	}
}

// readWriting reads the options and the body of a write.
func (d *door) readWriting(w http.ResponseWriter, r *Request) (*writing, error) {
	x := &writing{Request: r, mediaType: mediaType(r.Header.Get("Content-Type"))}
	var err error
	if x.options, err = parseWriteOptions(r); err != nil {
		return nil, err
	}
	if x.form, err = d.codec.Negotiate(r.Request, d.bodyType(r), wire.Object); err != nil {
		return nil, err
	}
	body, err := d.readBody(w, r)
	if err != nil {
		return nil, err
	}
	x.subject = d.subjectOf(r)
	if r.Verb == "patch" {
		x.patch, x.unconditional = body, true
		return x, d.checkPatchOptions(x)
	}
	if x.body, err = d.codec.Decode(r.Header.Get("Content-Type"), body, d.bodyType(r)); err != nil {
		return nil, err
	}
	version, _ := strategy.Metadata(x.body.Object)["resourceVersion"].(string)
	x.unconditional = version == "" || version == "0"
	return x, nil
}

// readBody reads the whole body, up to the limit (413 beyond it).
func (d *door) readBody(w http.ResponseWriter, r *Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, d.bodyLimit))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, services.TooLarge("Request entity too large: limit is %d", d.bodyLimit)
	}
	if err != nil {
		return nil, services.BadRequest("the body of the request could not be read: %v", err)
	}
	return body, nil
}

// answerWrite sends the object as it is now.
func (d *door) answerWrite(w http.ResponseWriter, x *writing, object services.Object) error {
	for _, text := range x.warnings {
		warn(w, text)
	}
	status := http.StatusOK
	if x.created {
		status = d.vocabulary.Behaviour.CreatedStatus
	}
	return d.sendObject(w, x.Request, reply{object: object, form: x.form, status: status})
}
