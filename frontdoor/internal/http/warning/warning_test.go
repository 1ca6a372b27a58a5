package warning

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

func sent(texts ...string) []string {
	h := http.Header{}
	Send(h, texts...)
	return h.Values("Warning")
}

func TestSend(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                    `299 - "plain"`,
		`a "quoted" \ text`:        `299 - "a \"quoted\" \\ text"`,
		"größer":                   `299 - "größer"`,
		"control\ncharacter":       "",
		"broken\xff":               "",
		"":                         "",
		strings.Repeat("x", 4096):  `299 - "` + strings.Repeat("x", 4096) + `"`,
		strings.Repeat("é", 4097):  `299 - "` + strings.Repeat("é", 255) + `…"`,
		strings.Repeat("x", 1<<20): `299 - "` + strings.Repeat("x", 255) + `…"`,
	} {
		got := sent(text)
		if want == "" && len(got) != 0 || want != "" && (len(got) != 1 || got[0] != want) {
			t.Errorf("%.40q: got %.300q, want %.300q", text, got, want)
		}
	}
}

func TestManyAreBounded(t *testing.T) {
	texts := make([]string, 100_000)
	for i := range texts {
		texts[i] = fmt.Sprintf("unknown field %q", fmt.Sprintf("spec.f%d", i))
	}
	h := http.Header{}
	Send(h, "first", "first")
	Send(h, texts...)
	got, total := h.Values("Warning"), 0
	for _, value := range got {
		total += utf8.RuneCountInString(value)
	}
	if got[0] != `299 - "first"` || len(got) < 100 || got[1] == got[0] {
		t.Errorf("%d headers, beginning with %q", len(got), got[:2])
	}
	if total > 8<<10 {
		t.Errorf("%d characters of headers", total)
	}
	if long := sent(texts[0], strings.Repeat("x", 5000)); len(long) != 2 || long[0] != `299 - "unknown field \"spec.f0\""` {
		t.Errorf("one long warning: got %.100q", long)
	}
	// As in kube-apiserver, the last one may exceed the limit.
	for i := range 50 {
		texts[i] = fmt.Sprintf("%0100d", i)
	}
	if each := sent(texts[:50]...); len(each) != 41 {
		t.Errorf("%d headers of 100 characters", len(each))
	}
}

func TestListHoldsEachOnce(t *testing.T) {
	var l List
	for range 3 {
		l.Add("a", "", "b", "a")
	}
	if got := l.Texts(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("got %q", got)
	}
}
