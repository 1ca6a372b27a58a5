// Package floor is a plain TLS server that answers every request with the same bytes from
// memory, over HTTP/2 as Go's standard library serves it: what a list of the same size costs
// at least. It knows no API.
package floor

import (
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// Command is the first argument with which the benchmark runs itself as this server.
const Command = "floor"

// Main serves until it fails. Its arguments are an address, the files of a certificate and
// its key, and the file of the response, which is read at the first request after it exists.
func Main(args []string) error {
	server := &http.Server{Addr: args[0], Handler: Handler(args[3]), ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServeTLS(args[1], args[2])
}

// Handler serves the content of a file from memory.
func Handler(file string) http.Handler {
	var once sync.Mutex
	var body []byte
	read := func() (content []byte, err error) {
		once.Lock()
		defer once.Unlock()
		if body == nil {
			body, err = os.ReadFile(file)
		}
		return body, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		content, err := read()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content) // fails only if the client has gone
	})
}
