// Package static serves contents that do not depend on the caller, with an entity tag, so that
// browsers do not download again what has not changed.
package static

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"time"
)

// File is a content with its type.
type File struct {
	content     []byte
	contentType string
	etag        string
}

// New returns a file whose type is that of a name.
func New(name string, content []byte) *File {
	sum := sha256.Sum256(content)
	return &File{content: content, contentType: mime.TypeByExtension(path.Ext(name)), etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// Content returns the content, which must not be changed.
func (f *File) Content() []byte { return f.content }

// ServeHTTP answers with the file; with 404 if it is nil.
func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f == nil {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("Etag", f.etag)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}
