package connect

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
)

// maxPage is the size of the largest HTML page, unpacked, that is rewritten: it is held
// in memory for that.
const maxPage = 4 << 20

// errLargePage is the error of a larger one.
var errLargePage = errors.New("the HTML page is too large for its links to be rewritten")

// bounded bounds the HTML that a transport returns, which is unpacked before, so that
// a small page cannot stand for a large one.
type bounded struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "text/html" || response.Header.Get("Location") != "" {
		return response, nil
	}
	page := &page{ReadCloser: response.Body, from: response.Body, left: maxPage}
	response.Body = page
	if r.Method == http.MethodHead {
		return response, nil
	}
	switch response.Header.Get("Content-Encoding") {
	case "gzip":
		if page.from, err = gzip.NewReader(page.ReadCloser); err != nil {
			_ = page.Close()
			return nil, err
		}
	case "deflate":
		page.from = flate.NewReader(page.ReadCloser)
	default:
		return response, nil
	}
	response.Header.Del("Content-Encoding")
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	return response, nil
}

// page is the body of an HTML page.
type page struct {
	io.ReadCloser
	from io.Reader
	left int
}

func (p *page) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	if p.left -= n; p.left < 0 {
		return 0, errLargePage
	}
	return n, err
}
