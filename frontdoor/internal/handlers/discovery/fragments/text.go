package fragments

import (
	"bytes"
	"compress/flate"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// text is a compressed section: items in the order of their names.
type text struct {
	zipped []byte
	size   int
	items  []item
}

// item is where a text has a member, or several that follow each other, of which it has the first one's name.
type item struct {
	name       string
	start, end int
}

// Each calls of for each of n fragments, for several at a time, until there is an error. It leaves half of the processors
// to others, where there are many.
func Each(n int, of func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(max(2, runtime.GOMAXPROCS(0)/2))
	for i := range n {
		group.Go(func() error { return of(i) })
	}
	return group.Wait()
}

// compressors are idle. One takes a megabyte.
var compressors = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is valid
	return w
}}

func compressed(plain []byte) ([]byte, error) {
	w := compressors.Get().(*flate.Writer)
	defer compressors.Put(w)
	var zipped bytes.Buffer
	w.Reset(&zipped)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(zipped.Bytes()), nil
}

// reader decompresses texts. It keeps the last one, and those with many items, which are read in turns with others.
type reader struct {
	inflate io.ReadCloser
	last    *text
	plain   []byte
	many    map[*text][]byte
}

// manyItems is more than a fragment of custom types has.
const manyItems = 100

// read returns an item of a text. It is valid until the next call.
func (r *reader) read(of *text, at item) ([]byte, error) {
	if of == r.last {
		return r.plain[at.start:at.end], nil
	}
	if plain, ok := r.many[of]; ok {
		return plain[at.start:at.end], nil
	}
	if r.inflate == nil {
		r.inflate, r.many = flate.NewReader(bytes.NewReader(of.zipped)), map[*text][]byte{}
	} else if err := r.inflate.(flate.Resetter).Reset(bytes.NewReader(of.zipped), nil); err != nil {
		return nil, err
	}
	plain := r.plain[:0]
	if len(of.items) > manyItems {
		plain = nil
	}
	if cap(plain) < of.size {
		plain = make([]byte, 0, of.size)
	}
	plain = plain[:of.size]
	if _, err := io.ReadFull(r.inflate, plain); err != nil {
		return nil, err
	}
	if len(of.items) > manyItems {
		r.many[of] = plain
	} else {
		r.last, r.plain = of, plain
	}
	return plain[at.start:at.end], nil
}
