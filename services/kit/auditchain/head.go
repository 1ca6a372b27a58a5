package auditchain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// headSuffix is the suffix of the file, next to a log, that has the link of its last line. It shows that lines
// at the end are missing.
const headSuffix = ".head"

// maxTail bounds the lines that are read at a start to find the end of the chain, in bytes.
const maxTail = 4 << 20

// Head remembers the end of the chain of a log. It is safe for concurrent use.
type Head struct {
	key  Key
	file *os.File

	mu     sync.Mutex
	link   Link
	proven bool // the last line has the hash of the one before it
}

// Open continues the chain of the log at path, or begins one. The file that the log is written to may
// have been rotated since its last line was.
func Open(path string, key Key) (*Head, error) {
	link, err := ReadHead(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	link, proven, err := last(path, key, link)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path+headSuffix, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Head{key: key, file: file, link: link, proven: proven}, nil
}

// ReadHead returns the link of the last line of the log at path.
func ReadHead(path string) (Link, error) {
	content, err := os.ReadFile(path + headSuffix)
	if err != nil {
		return Link{}, err
	}
	text := strings.TrimSpace(string(content))
	if text == "" { // the process ended before it wrote a line
		return Link{}, nil
	}
	link, err := ParseLink(text)
	if err != nil {
		return link, fmt.Errorf("%s: %w", path+headSuffix, err)
	}
	return link, nil
}

// last returns the link of the last line that follows head: the process may have ended after a line was
// written, and before the head was. proven reports whether that line is known to have the hash of the one before. It
// also ends a line that was written in part only.
func last(path string, key Key, head Link) (link Link, proven bool, err error) {
	proven = head.N == 0
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return head, proven, nil
	}
	if err != nil {
		return head, proven, err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return head, proven, err
	}
	tail := make([]byte, min(size, maxTail))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return head, proven, err
	}
	if tail[len(tail)-1] != '\n' {
		if _, err := file.WriteString("\n"); err != nil {
			return head, proven, err
		}
	}
	for chained := range bytes.Lines(tail) {
		line, link, err := Split(bytes.TrimSuffix(chained, []byte("\n")))
		if err == nil && link.N == head.N+1 && head.Next(key, line) == link {
			head = link
		}
		if err == nil && link == head {
			_, _, proven = proof(line)
		}
	}
	return head, proven, nil
}

// Chain calls write with a line and its link, and moves the head if it succeeds. It returns the
// error of write, or of the file of the head.
func (h *Head) Chain(line []byte, write func(chained []byte) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	line = h.link.prove(line, h.proven)
	next := h.link.Next(h.key, line)
	if err := write(Append(make([]byte, 0, len(line)+2*len(next.Hash)+64), line, next)); err != nil {
		return err
	}
	h.link, h.proven = next, true
	// The number only grows, so that no bytes of the link before are left.
	_, err := h.file.WriteAt([]byte(next.String()+"\n"), 0)
	return err
}

// Link returns the end of the chain.
func (h *Head) Link() Link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.link
}

// Close closes the file of the head.
func (h *Head) Close() error { return h.file.Close() }
