package auditchain

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// maxLine is the maximum length of a line. Bodies in events are bounded far below it.
const maxLine = 16 << 20

// Problem is a place where the chain is broken.
type Problem struct {
	File string
	Line int // from 1
	What string
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What) }

// Report is the result of Verify.
type Report struct {
	Lines       int
	First, Last Link
	// Unproven means that the first line cannot be verified: it is of an earlier release, and the line before it is not
	// among the files.
	Unproven bool
	Problems []Problem
}

// checker verifies lines in their order.
type checker struct {
	Report
	key    Key
	begun  bool
	proven bool // the last line has the hash of the one before it
}

// Verify verifies the lines of files, rotated and compressed ones included, in the order of their numbers. The
// lines before the first one may be missing, because old files are deleted; nothing else may.
// An error is a file that cannot be read.
func Verify(key Key, paths ...string) (Report, error) {
	c := &checker{key: key}
	ordered, err := inOrder(paths)
	if err != nil {
		return c.Report, err
	}
	for _, path := range ordered {
		if err := c.file(path); err != nil {
			return c.Report, fmt.Errorf("%s: %w", path, err)
		}
	}
	return c.Report, nil
}

// inOrder sorts files by the number of their first line that has one.
func inOrder(paths []string) ([]string, error) {
	first := map[string]uint64{}
	for _, path := range paths {
		found := errors.New("found")
		err := lines(path, func(_ int, line []byte) error {
			_, link, err := Split(line)
			if err == nil {
				first[path] = link.N
				return found
			}
			return nil
		})
		if err != nil && !errors.Is(err, found) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	ordered := slices.Clone(paths)
	slices.SortStableFunc(ordered, func(a, b string) int { return cmp.Compare(first[a], first[b]) })
	return ordered, nil
}

func (c *checker) file(path string) error {
	return lines(path, func(number int, chained []byte) error {
		if what := c.line(chained); what != "" {
			c.Problems = append(c.Problems, Problem{path, number, what})
		}
		return nil
	})
}

// line returns what is wrong with the next line. After a problem the chain is taken up again at the
// line's own link, so that each problem is found once.
func (c *checker) line(chained []byte) string {
	c.Lines++
	line, link, err := Split(chained)
	if err != nil {
		return "the line was edited or is incomplete: " + err.Error()
	}
	before, proven := c.Last, c.proven || !c.begun
	sum, follows, ok := proof(line)
	c.Last, c.proven = link, ok
	if !c.begun {
		c.begun, c.First = true, link
		if link.N > 1 { // its predecessor is not here
			return c.first(line, link, sum)
		}
	}
	switch {
	case link.N != before.N+1 && link.N > before.N:
		return fmt.Sprintf("line %d follows line %d: lines in between are missing", link.N, before.N)
	case link.N != before.N+1:
		return fmt.Sprintf("line %d follows line %d: lines were moved or repeated, or another chain begins", link.N, before.N)
	case before.Next(c.key, line) != link:
		return fmt.Sprintf("line %d or the previous one was edited, or another key was used", link.N)
	case follows && !proven:
		return fmt.Sprintf("line %d was edited: it lacks the hash of the line before it", before.N)
	}
	return ""
}

// first returns what is wrong with the first line, whose predecessor had the hash before.
func (c *checker) first(line []byte, link Link, before [sha256.Size]byte) string {
	if c.Unproven = !c.proven; c.Unproven || (Link{link.N - 1, before}).Next(c.key, line) == link {
		return ""
	}
	return fmt.Sprintf("line %d was edited, or another key was used", link.N)
}

// lines calls visit with the lines of a file.
func lines(path string, visit func(number int, line []byte) error) error {
	file, err := os.Open(path) //nolint:gosec // named by the operator
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var content io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if content, err = gzip.NewReader(file); err != nil {
			return err
		}
	}
	scanner := bufio.NewScanner(content)
	scanner.Buffer(make([]byte, 0, 1<<16), maxLine)
	for number := 1; scanner.Scan(); number++ {
		if line := bytes.TrimSpace(scanner.Bytes()); len(line) > 0 {
			if err := visit(number, line); err != nil {
				return err
			}
		}
	}
	return scanner.Err()
}
