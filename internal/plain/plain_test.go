package plain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/plain"
)

// hostile has a colour, a title, a forged line, text from right to left, a character without width, one beyond
// the basic plane, and bytes that are no UTF-8.
const hostile = "\x1b[31mEVIL\x1b]0;title\x07\nUser forged\t\r\u202eabc\u2066\u200b\u0085\U000e0041\x9b5n ä"

const escaped = `\u001b[31mEVIL\u001b]0;title\u0007\u000aUser forged\u0009\u000d\u202eabc\u2066\u200b\u0085\udb40\udc41\x9b5n ä`

// TestFprintf: the layout is that of the format, whatever the arguments are.
func TestFprintf(t *testing.T) {
	var out bytes.Buffer
	_, _ = plain.Fprintf(&out, "%s\t%v\n%-4s|%d %.1f %v %t\n", hostile, errors.New(hostile), "a", 7, 1.25, time.Second, true)
	if want := escaped + "\t" + escaped + "\na   |7 1.2 1s true\n"; out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

// TestWriter: newlines and tabs pass, in whichever parts the text comes, and JSON keeps its meaning.
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := plain.NewWriter(&out)
	for _, b := range []byte("ä\n\t\u202e\x1b.") {
		if n, err := w.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := "ä\n\t" + `\u202e\u001b.`; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	name := "\x1b\u202e\u0085\U000e0041\x7f"
	if err := json.NewEncoder(plain.NewWriter(&out)).Encode(name); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != name || bytes.ContainsAny(out.Bytes(), "\x1b\x7f\u202e") {
		t.Errorf("%q from %q, %v", got, out.String(), err)
	}
}
