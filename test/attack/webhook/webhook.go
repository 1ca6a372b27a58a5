// Package webhook is an HTTPS server that answers admission reviews like a hostile webhook.
// Each behaviour is one function; the server listens on loopback and ends with Close.
package webhook

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"
)

// Behaviour answers one review.
type Behaviour func(w http.ResponseWriter, r *http.Request, review Review)

// Review is the part of a review that a response needs.
type Review struct {
	APIVersion string
	Request    struct{ UID string }
}

// Server is a running webhook.
type Server struct {
	server   *httptest.Server
	received atomic.Int64
}

// Start starts a server with a behaviour.
func Start(b Behaviour) *Server {
	s := &Server{}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.received.Add(1)
		body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
		if err != nil {
			return
		}
		var review Review
		_ = json.Unmarshal(body, &review)
		b(w, r, review)
	}))
	s.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.server.StartTLS()
	return s
}

// URL returns the URL of the server.
func (s *Server) URL() string { return s.server.URL }

// Received returns the number of received reviews.
func (s *Server) Received() int64 { return s.received.Load() }

// CABundle returns the CA of its certificate in the form of a webhook configuration.
func (s *Server) CABundle() string {
	block := &pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block))
}

// Close ends the server.
func (s *Server) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// Answer allows the request; more contains further members of the response as JSON.
func Answer(more string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, review Review) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"AdmissionReview","response":{"uid":%q,"allowed":true%s}}`,
			review.APIVersion, review.Request.UID, more)
	}
}

// Patch allows the request and changes the object by a JSON patch.
func Patch(operations string) Behaviour {
	return Answer(`,"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString([]byte(operations)) + `"`)
}

// CopyBomb doubles a value by copying it repeatedly.
func CopyBomb(doublings int) Behaviour {
	operations := []string{`{"op":"add","path":"/metadata/annotations","value":{"b":"` + strings.Repeat("x", 64) + `"}}`,
		`{"op":"add","path":"/data","value":{"a":{}}}`, `{"op":"copy","from":"/metadata/annotations","path":"/data/a/x"}`}
	for i := range doublings {
		operations = append(operations, fmt.Sprintf(`{"op":"copy","from":"/data/a","path":"/data/a/c%d"}`, i))
	}
	return Patch("[" + strings.Join(operations, ",") + "]")
}

// Warn allows the request with a number of warnings of a length.
func Warn(count, length int) Behaviour {
	warnings, _ := json.Marshal(strings.Split(strings.TrimSuffix(strings.Repeat(strings.Repeat("w", length)+" ", count), " "), " "))
	return Answer(`,"warnings":` + string(warnings))
}

// Deny refuses with a status code.
func Deny(code int) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, review Review) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"AdmissionReview","response":{"uid":%q,"allowed":false,"status":{"code":%d,"message":"no"}}}`,
			review.APIVersion, review.Request.UID, code)
	}
}

// WrongUID answers with the uid of another review.
func WrongUID() Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, review Review) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"AdmissionReview","response":{"uid":"other","allowed":true}}`, review.APIVersion)
	}
}

// Garbage answers with invalid JSON.
func Garbage() Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ Review) {
		_, _ = io.WriteString(w, "\x00\xff{{{{\"uid\":")
	}
}

// Redirect answers with a redirect to another URL.
func Redirect(to string) Behaviour {
	return func(w http.ResponseWriter, r *http.Request, _ Review) {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}
}

// Endless answers with white space of up to a number of bytes and no review.
func Endless(bytes int) Behaviour {
	return func(w http.ResponseWriter, r *http.Request, _ Review) {
		chunk := []byte(strings.Repeat(" ", 64<<10))
		for sent := 0; sent < bytes && r.Context().Err() == nil; sent += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
}

// Slow answers after a delay, or when the client has disconnected.
func Slow(d time.Duration) Behaviour {
	return func(w http.ResponseWriter, r *http.Request, review Review) {
		ctx, cancel := context.WithTimeout(r.Context(), d)
		defer cancel()
		<-ctx.Done()
		Answer("")(w, r, review)
	}
}

// Zipped compresses what another behaviour answers.
func Zipped(b Behaviour) Behaviour {
	return func(w http.ResponseWriter, r *http.Request, review Review) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		b(zippedWriter{w, z}, r, review)
	}
}

type zippedWriter struct {
	http.ResponseWriter
	io.Writer
}

func (z zippedWriter) Write(p []byte) (int, error) { return z.Writer.Write(p) }
