// Package plain writes the texts of the commands for people. Names that others have chosen can neither control the
// terminal nor forge lines: everything is escaped where it is printed, and not where it comes from.
package plain

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fprintf writes a text whose layout, with its newlines and tabs, is the format. What is not printable in the
// arguments is escaped, newlines and tabs included. A format has no verbs for slices, maps and structs.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	escaped := make([]any, len(args))
	for i, arg := range args {
		escaped[i] = escapedArg(arg)
	}
	return fmt.Fprintf(w, format, escaped...)
}

// escapedArg returns a number or truth value as it is, and the text of anything else, escaped.
func escapedArg(arg any) any {
	switch arg := arg.(type) {
	case nil:
		return arg
	case error:
		return Escape(arg.Error())
	case fmt.Stringer:
		return Escape(arg.String())
	}
	switch v := reflect.ValueOf(arg); {
	case v.CanInt(), v.CanUint(), v.CanFloat(), v.Kind() == reflect.Bool:
		return arg
	}
	return Escape(fmt.Sprint(arg))
}

// Escape returns a text in which everything that is not printable is escaped, as in JSON: control characters,
// newlines and tabs, and characters that change the direction of text or have no width. Bytes that are not UTF-8
// become \xNN.
func Escape(text string) string {
	if !strings.ContainsFunc(text, escapes) {
		return text
	}
	return string(appendEscaped(nil, []byte(text), ""))
}

func escapes(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// appendEscaped appends a text, in which the characters of layout stay.
func appendEscaped(to, text []byte, layout string) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			to = fmt.Appendf(to, `\x%02x`, text[0])
		case unicode.IsPrint(r) || strings.ContainsRune(layout, r):
			to = append(to, text[:size]...)
		case r > 0xffff: // as a surrogate pair
			to = fmt.Appendf(to, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			to = fmt.Appendf(to, `\u%04x`, r)
		}
		text = text[size:]
	}
	return to
}

// Writer passes on what is printable, newlines and tabs, and escapes the rest. JSON stays the same JSON.
type Writer struct {
	to   io.Writer
	rest []byte // the beginning of a character
}

// NewWriter returns a writer to w. It must not be used concurrently.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Write implements io.Writer. A character that ends with a later call is written then.
func (w *Writer) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	end := len(text)
	for start := end - 1; start >= 0 && start >= end-utf8.UTFMax; start-- {
		if utf8.RuneStart(text[start]) {
			if !utf8.FullRune(text[start:]) {
				end = start
			}
			break
		}
	}
	out := appendEscaped(make([]byte, 0, end), text[:end], "\n\t")
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
