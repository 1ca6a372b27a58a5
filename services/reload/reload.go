// Package reload reads files such as certificates again when they are replaced. It compares
// contents and not modification times, so that it detects every kind of replacement.
package reload

import (
	"bytes"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// Config configures Files.
type Config[T any] struct {
	// What describes the files, for the log.
	What string
	// Paths of the files. They are parsed together.
	Paths []string
	// Parse returns the value of the files' contents, which are in the order of Paths.
	Parse func(content [][]byte) (T, error)
	// Failed is called when new content is refused, and when the files can no longer be read, once for each. It
	// may be nil.
	Failed func()
	// Every is the minimum interval between reads; 0: read at every Get.
	Every time.Duration
	Log   *slog.Logger
}

// Files is a value that is parsed from files. It is safe for concurrent use.
type Files[T any] struct {
	config Config[T]

	mu      sync.Mutex
	checked time.Time
	content [][]byte // of current
	current T
	refused [][]byte // the last invalid content, to log it once
	missing bool     // the files cannot be read
}

// Open reads the files for the first time.
func Open[T any](c Config[T]) (*Files[T], error) {
	content, err := read(c.Paths)
	if err != nil {
		return nil, err
	}
	current, err := c.Parse(content)
	if err != nil {
		return nil, err
	}
	return &Files[T]{config: c, checked: time.Now(), content: content, current: current}, nil
}

// Get returns the value of the files, or the previous one while they are invalid, such as
// while only the certificate and not its key has been replaced.
func (f *Files[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.config.Every > 0 && time.Since(f.checked) < f.config.Every {
		return f.current
	}
	return f.read()
}

// Now is Get without regard to Every.
func (f *Files[T]) Now() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read()
}

// read reads the files again. The caller holds mu.
func (f *Files[T]) read() T {
	f.checked = time.Now()
	content, err := read(f.config.Paths)
	if err != nil {
		if !f.missing {
			f.missing = true
			f.failed("files cannot be read, keeping those in use", err)
		}
		return f.current
	}
	f.missing = false
	if same(content, f.content) || same(content, f.refused) {
		return f.current
	}
	next, err := f.config.Parse(content)
	if err != nil {
		f.refused = content
		f.failed("new files refused, keeping those in use", err)
		return f.current
	}
	f.content, f.current, f.refused = content, next, nil
	f.config.Log.Info("files read again", "what", f.config.What)
	return next
}

func (f *Files[T]) failed(message string, err error) {
	f.config.Log.Warn(message, "what", f.config.What, "error", err)
	if f.config.Failed != nil {
		f.config.Failed()
	}
}

func read(paths []string) (content [][]byte, err error) {
	content = make([][]byte, len(paths))
	for i, path := range paths {
		if content[i], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return content, nil
}

func same(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
