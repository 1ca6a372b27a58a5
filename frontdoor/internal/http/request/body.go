package request

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/limit"
)

const (
	// firstRead is the size of the buffer before the first byte has been read.
	firstRead = 4 << 10
	// overhead approximates the memory of a request besides its body.
	overhead = 16 << 10
	// light is the size of a body that takes little memory whatever it holds, and lightHead that of a request line and
	// headers.
	light, lightHead = 64 << 10, 4 << 10
	// headWeight is how many times the bytes of a request line and headers are held: as they were read, and parsed.
	headWeight = 3
)

// weight returns the additional memory for decoding a body, or RequestEntityTooLarge (413). The parts of Protobuf and
// CBOR are not known before: see Charge.
func weight(body []byte, media string) (int64, error) {
	if len(body) <= light {
		return 0, nil
	}
	media, _, _ = strings.Cut(media, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	var n int64
	var err error
	switch {
	case media == "" || strings.HasSuffix(media, "json"):
		n, err = ledger.Body.Check(body)
	case strings.HasSuffix(media, "yaml"):
		n, err = ledger.Body.CheckYAML(body)
	}
	var excess *ledger.ExcessError
	if errors.As(err, &excess) {
		return 0, tooLarge(limit.Body, excess)
	}
	return n, err
}

// CheckStored returns RequestEntityTooLarge (413) for an object, as JSON, that may not be stored: patches could make
// one with more values than the body of any request, for all who read it.
func CheckStored(object []byte) error {
	_, err := weight(object, "")
	return err
}

// Receive reads the body of a request that may have one, for ReadBody to return. The
// buffer is charged to the user's share as it grows, so that announcing a large body
// costs nothing; so are a long URL and long headers, and the selectors in them. The memory is
// held until r.Memory is released.
func (r *Request) Receive(w http.ResponseWriter, memory *ledger.Ledger) error {
	r.memory = memory
	if err := r.grow(r.headBytes()); err != nil {
		return err
	}
	if !r.mutates() {
		return nil
	}
	r.received = true
	if r.Body != nil && r.Body != http.NoBody {
		r.receiveBody(http.MaxBytesReader(w, r.Body, ledger.Body.Bytes))
	}
	return nil
}

// headBytes returns the memory of the request line and the headers, unless that is little.
func (r *Request) headBytes() int64 {
	n := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	if n <= lightHead {
		return 0
	}
	return headWeight*int64(n) + ledger.SelectorWeight(r.Query.Get("labelSelector")) + ledger.SelectorWeight(r.Query.Get("fieldSelector"))
}

func (r *Request) receiveBody(body io.Reader) {
	size := firstRead
	if r.ContentLength >= 0 {
		size = int(min(r.ContentLength, firstRead)) + 1 // one byte more, to detect EOF
	}
	if r.bodyErr = r.grow(int64(overhead + size)); r.bodyErr != nil {
		return
	}
	read := make([]byte, 0, size)
	for {
		n, err := body.Read(read[len(read):cap(read)])
		read = read[:len(read)+n]
		if err != nil {
			if r.body, r.bodyErr = read, bodyError(err); r.bodyErr == nil {
				r.bodyErr = r.weigh(read)
			}
			return
		}
		if len(read) < cap(read) {
			continue
		}
		size := 2 * cap(read)
		if r.ContentLength >= int64(len(read)) {
			size = min(2*size, int(min(r.ContentLength, ledger.Body.Bytes))+1)
		}
		if r.bodyErr = r.grow(int64(size - cap(read))); r.bodyErr != nil {
			return
		}
		read = append(make([]byte, 0, size), read...)
	}
}

// weigh charges the memory for decoding the body.
func (r *Request) weigh(body []byte) error {
	n, err := weight(body, r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	return r.Charge(int(n))
}

// Charge reserves the additional memory for decoding the body, at most half of a user's share, so that no body is
// always too much. It returns TooManyRequests (429) if the user's requests in flight hold too many bytes.
func (r *Request) Charge(n int) error {
	if r.memory == nil {
		return nil
	}
	return r.grow(min(int64(n), r.memory.Share()/2))
}

func (r *Request) grow(n int64) error {
	if err := (ledger.Account{Ledger: r.memory, Owner: r.Owner()}).Grow(&r.Memory, n); err != nil {
		return services.AsStatus(err)
	}
	return nil
}

// Owner returns who pays for the memory of the request.
func (r *Request) Owner() ledger.Owner {
	who := r.Requester()
	return ledger.Owner{Kind: ledger.User, Name: who.Name, Exempt: who.Class == inflight.Exempt}
}

// ReadBody returns the whole body. The error is RequestEntityTooLarge (413) beyond the bounds of
// ledger.Body, TooManyRequests (429) if the user's requests in flight hold too many bytes,
// and Timeout (408) if the client was too slow.
func (r *Request) ReadBody(w http.ResponseWriter) ([]byte, error) {
	if !r.received {
		if r.Body != nil {
			r.receiveBody(http.MaxBytesReader(w, r.Body, ledger.Body.Bytes))
		}
		r.received = true
	}
	return r.body, r.bodyErr
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
		return limit.Exceeded(limit.Body, services.TooLarge("Request entity too large: limit is %d", ledger.Body.Bytes))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &services.Status{Code: http.StatusRequestTimeout, Reason: services.ReasonTimeout,
			Message: "the request body arrived too slowly", Details: &services.StatusDetails{}}
	}
	return services.BadRequest("the request body could not be read: %v", err)
}
