package request

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
)

// BodyLimit is the maximum size of a request body in bytes.
const BodyLimit = 3 << 20

const (
	// firstRead is the size of the buffer before the first byte has been read.
	firstRead = 4 << 10
	// overhead approximates the memory of a request besides its body.
	overhead = 16 << 10
	// light is the size of a body that takes little memory whatever it holds. perPart is what an
	// object, a list or a line of YAML takes at least when it is decoded: many times its bytes if
	// it is empty. A quarter of a user's share is charged for that at most, so that no body is
	// always too much.
	light     = 64 << 10
	perPart   = 128
	mostParts = 16 << 20 / perPart
	// mostDecoded is what is charged at most for decoding a body that is no text, for the same
	// reason: with the body and its parts it is less than a user's share.
	mostDecoded = 40 << 20
)

// weight returns the additional memory for decoding a body.
func weight(body []byte) int {
	if len(body) <= light {
		return 0
	}
	parts := bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte{'['}) + bytes.Count(body, []byte{'\n'})
	return perPart * min(parts, mostParts)
}

// Receive reads the body of a request that may have one, for ReadBody to return. The
// buffer is charged to the user's share as it grows, so that announcing a large body
// costs nothing. The memory is held until r.Memory is released.
func (r *Request) Receive(w http.ResponseWriter, memory *inflight.Bytes) {
	r.memory = memory
	if !r.mutates() {
		return
	}
	r.received = true
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	who, body := r.Requester(), http.MaxBytesReader(w, r.Body, BodyLimit)
	size := firstRead
	if r.ContentLength >= 0 {
		size = int(min(r.ContentLength, firstRead)) + 1 // one byte more, to detect EOF
	}
	if r.bodyErr = r.grow(who, overhead+size); r.bodyErr != nil {
		return
	}
	read := make([]byte, 0, size)
	for {
		n, err := body.Read(read[len(read):cap(read)])
		read = read[:len(read)+n]
		if err != nil {
			if r.body, r.bodyErr = read, bodyError(err); r.bodyErr == nil {
				r.bodyErr = r.grow(who, weight(read))
			}
			return
		}
		if len(read) < cap(read) {
			continue
		}
		size := 2 * cap(read)
		if r.ContentLength >= int64(len(read)) {
			size = min(2*size, int(min(r.ContentLength, BodyLimit))+1)
		}
		if r.bodyErr = r.grow(who, size-cap(read)); r.bodyErr != nil {
			return
		}
		read = append(make([]byte, 0, size), read...)
	}
}

// Charge reserves the additional memory for decoding the body: that of a body that is no text, whose parts are
// not known before. It returns TooManyRequests (429) if the user's requests in flight hold too many bytes.
func (r *Request) Charge(n int) error {
	if r.memory == nil {
		return nil
	}
	return r.grow(r.Requester(), min(n, mostDecoded))
}

func (r *Request) grow(who inflight.Requester, n int) error {
	if r.Memory.Grow(r.memory, who, n) {
		return nil
	}
	return inflight.TooMany("too many bytes of request bodies in progress, please try again later")
}

// ReadBody returns the whole body. The error is RequestEntityTooLarge (413) beyond
// BodyLimit, TooManyRequests (429) if the user's requests in flight hold too many bytes,
// and Timeout (408) if the client was too slow.
func (r *Request) ReadBody(w http.ResponseWriter) ([]byte, error) {
	if r.received {
		return r.body, r.bodyErr
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, BodyLimit))
	return body, bodyError(err)
}

// Received returns what Receive has read, for the audit log.
func (r *Request) Received() []byte { return r.body }

// bodyError translates an error of reading a body for the client. It returns nil for
// io.EOF.
func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &tooLarge):
		return limit.Exceeded(limit.Body, services.TooLarge("Request entity too large: limit is %d", BodyLimit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &services.Status{Code: http.StatusRequestTimeout, Reason: services.ReasonTimeout,
			Message: "the request body arrived too slowly", Details: &services.StatusDetails{}}
	}
	return services.BadRequest("the request body could not be read: %v", err)
}
