// Package progress draws a bar for work that takes long, such as a backup or a load. It draws on
// terminals only, and writes nothing into files and pipes.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// interval is the time between two drawings.
	interval = 100 * time.Millisecond
	// cells is the length of the bar in characters.
	cells     = 30
	clearLine = "\r\x1b[K"
)

// Bytes writes an amount of bytes.
func Bytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Bar shows how much of a piece of work is done. Its methods may be called concurrently, and do
// nothing on nil.
type Bar struct {
	out   *os.File
	label string
	total int64 // 0: unknown
	unit  func(int64) string

	lock  sync.Mutex
	done  int64
	began time.Time
	drawn time.Time
	ended bool
}

// Start returns a bar on out, or nil if that is no terminal. unit is how amounts are written; nil is
// for numbers. A total of 0 is unknown.
func Start(out io.Writer, label string, total int64, unit func(int64) string) *Bar {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	if unit == nil {
		unit = func(n int64) string { return fmt.Sprint(n) }
	}
	b := &Bar{out: file, label: label, total: total, unit: unit, began: time.Now()}
	b.draw(b.began)
	return b
}

// Add records that n more is done.
func (b *Bar) Add(n int64) {
	if b == nil {
		return
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	b.done += n
	if now := time.Now(); !b.ended && now.Sub(b.drawn) >= interval {
		b.draw(now)
	}
}

// Set records how much is done.
func (b *Bar) Set(n int64) {
	if b == nil {
		return
	}
	b.lock.Lock()
	n -= b.done
	b.lock.Unlock()
	b.Add(n)
}

// SetTotal records how much there is to do.
func (b *Bar) SetTotal(n int64) {
	if b == nil {
		return
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	b.total = n
}

// Follow records how much done returns, again and again until the returned function is called.
func (b *Bar) Follow(done func() int64) (end func()) {
	if b == nil {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				b.Set(done())
			case <-stop:
				b.Set(done())
				return
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

// Write counts what is written, for io.TeeReader and io.MultiWriter.
func (b *Bar) Write(p []byte) (int, error) {
	b.Add(int64(len(p)))
	return len(p), nil
}

// End removes the bar.
func (b *Bar) End() {
	if b == nil {
		return
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	b.ended = true
	fmt.Fprint(b.out, clearLine)
}

func (b *Bar) draw(now time.Time) {
	b.drawn = now
	line := []rune(b.line(now.Sub(b.began)))
	if width, _, err := term.GetSize(int(b.out.Fd())); err == nil && width > 0 {
		line = line[:min(len(line), width-1)]
	}
	fmt.Fprint(b.out, clearLine+string(line))
}

func (b *Bar) line(elapsed time.Duration) string {
	if b.total <= 0 {
		return fmt.Sprintf("%s %s %v", b.label, b.unit(b.done), elapsed.Round(time.Second))
	}
	part := min(max(float64(b.done)/float64(b.total), 0), 1)
	full := int(part * cells)
	left := ""
	if part > 0 && part < 1 {
		left = ", " + time.Duration(float64(elapsed)*(1-part)/part).Round(time.Second).String() + " left"
	}
	return fmt.Sprintf("%s [%s%s] %3.0f%%, %s of %s%s", b.label, strings.Repeat("#", full), strings.Repeat(".", cells-full), 100*part, b.unit(b.done), b.unit(b.total), left)
}
