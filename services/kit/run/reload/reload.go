// Package reload keeps what a process read from files, such as certificates, up to
// date with them: a certificate is renewed by replacing its files. The content
// decides, not the time of the files, so replacing them by any means is noticed.
package reload

import (
	"bytes"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// Config says what is read and how.
type Config[T any] struct {
	// What the files hold, for the log.
	What string
	// Paths of the files. They are parsed together.
	Paths []string
	// Parse makes the value of the files' content, which is in the order of Paths.
	Parse func(content [][]byte) (T, error)
	// Every is how often the files are looked at, at most; 0: at every Get.
	Every time.Duration
	Log   *slog.Logger
}

// Files is a value that follows files. Any goroutine may use it.
type Files[T any] struct {
	config Config[T]

	mu      sync.Mutex
	checked time.Time
	content [][]byte // what current was made of
	current T
	refused [][]byte // the last content that could not be used: logged once
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

// Get returns what the files hold now, or held last when they cannot be used, as
// while only one of a certificate and its key has been replaced.
func (f *Files[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.config.Every > 0 && time.Since(f.checked) < f.config.Every {
		return f.current
	}
	f.checked = time.Now()
	content, err := read(f.config.Paths)
	if err != nil || same(content, f.content) || same(content, f.refused) {
		return f.current
	}
	next, err := f.config.Parse(content)
	if err != nil {
		f.refused = content
		f.config.Log.Warn("new files refused, keeping those in use", "what", f.config.What, "error", err)
		return f.current
	}
	f.content, f.current, f.refused = content, next, nil
	f.config.Log.Info("files read again", "what", f.config.What)
	return next
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
