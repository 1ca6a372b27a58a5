package ledger

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

func user(name string) Owner { return Owner{Kind: User, Name: name} }

// TestShares: one owner has a quarter, others have the rest, small texts and administrators are never refused
// because of others, and owners of another kind with the same name are others.
func TestShares(t *testing.T) {
	l := New(1024)
	var greedy, late, admin, small, hook Hold
	if !greedy.Grow(l, user("greedy"), 256) || greedy.Grow(l, user("greedy"), 1) {
		t.Error("one user may hold a quarter")
	}
	if !hook.Grow(l, Owner{Kind: Webhook, Name: "greedy"}, 256) {
		t.Error("a webhook is not the user of its name")
	}
	for i := range 2 {
		var h Hold
		if !h.Grow(l, user(strconv.Itoa(i)), 256) {
			t.Error("others may hold the rest")
		}
		defer h.Release()
	}
	if late.Grow(l, user("late"), 5) {
		t.Error("more than all was given")
	}
	if !small.Grow(l, user("small"), 4) || !admin.Grow(l, Owner{Kind: User, Name: "admin", Exempt: true}, 1024) {
		t.Error("small texts, and those of administrators, are not refused for others")
	}
	greedy.Release()
	greedy.Release()
	if _, ok := l.accounts[account{User, "greedy"}]; ok || l.Held() != 3*256+4+1024 {
		t.Errorf("%d bytes are held, by %v", l.Held(), l.accounts)
	}
	if held, refused := l.HeldBy(User); held != 2*256+4+1024 || refused != 2 {
		t.Errorf("users hold %d bytes, and %d times more was refused", held, refused)
	}
}

func TestRoom(t *testing.T) {
	for memory, want := range map[int64]int64{0: 256 << 20, 100 << 20: 32 << 20, 1 << 30: 128 << 20, 64 << 30: 256 << 20} {
		if got := Room(memory); got != want {
			t.Errorf("of %d bytes, %d may be held for others, want %d", memory, got, want)
		}
	}
}

// TestNothing: a nil ledger, as in tests, refuses nothing.
func TestNothing(t *testing.T) {
	var h Hold
	if err := (Account{}).Grow(&h, 1<<40); err != nil {
		t.Error(err)
	}
	h.Release()
}

// TestCheck: bounds hold before a text is decoded, whatever it is, and strings are not structure.
func TestCheck(t *testing.T) {
	text := Text{Name: "the text", Bytes: 1000, Values: 10, Depth: 3, Weight: 100}
	for input, want := range map[string]string{
		`{"a":[1,2,3]}`:                        "",
		`{"a":"[[[[[[[[,,,,,,,,,,,,,,,"}`:      "",
		`{"a":"\"[[[[[[[[,,,,,,,,,,,,,,,\\"}`:  "",
		`{"a":"\\",[[[[`:                       "levels of nesting",
		`[1,2,3,4,5,6,7,8,9,10,11]`:            "values",
		`[{},{},{},{},{},{}]`:                  "values",
		`[[[[`:                                 "levels of nesting",
		`"` + strings.Repeat("x", 1000):        "bytes",
		`{"a`:                                  "",
		`\"\"`:                                 "",
		"]]]]]]]]":                             "",
		strings.Repeat(",", 11):                "values",
		`{"` + strings.Repeat(`\`, 100) + `"}`: "",
	} {
		_, err := text.Check([]byte(input))
		var excess *ExcessError
		if got := ""; errors.As(err, &excess) && excess.What != want || err == nil && want != got {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = text.Check([]byte(`{"a":[1,2,3]}`)) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCheck: what encoding/json decodes has at least as many values as were counted before.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}],"c":"\\\""}`, `[[],{},"",0]`, `"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		decoded, ok := decode(text)
		counted, _ := scan(text, len(text)+1, 0)
		if ok && count(decoded) > counted {
			t.Errorf("%q has %d values, %d were counted", text, count(decoded), counted)
		}
	})
}

// TestRead: a text is charged as it arrives and for what decoding takes, and refused as soon as it is too large.
func TestRead(t *testing.T) {
	l := New(4 << 20)
	text := Text{Name: "the text", Bytes: 100_000, Values: 10_000, Weight: 10}
	owner := Account{l, Owner{Kind: Webhook, Name: "hook"}}
	content := []byte("[" + strings.Repeat("1,", 5000) + "1]")
	var hold Hold
	got, err := owner.Read(&hold, iotest.OneByteReader(bytes.NewReader(content)), text)
	if err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%v, %d bytes", err, len(got))
	}
	if held := l.Held(); held < 5000*10+int64(len(content)) {
		t.Errorf("%d bytes are held", held)
	}
	hold.Release()
	endless := &counting{}
	if _, err := owner.Read(&hold, endless, text); err == nil || endless.n > 300_000 {
		t.Errorf("%v after %d bytes", err, endless.n)
	}
	hold.Release()
	small := Account{New(16 << 10), owner.Owner}
	if _, err := small.Read(&hold, &counting{}, text); !errors.As(err, new(*FullError)) {
		t.Errorf("without a share left: %v", err)
	}
	hold.Release()
	if _, err := owner.Read(&hold, iotest.ErrReader(io.ErrUnexpectedEOF), text); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want the error of the reader", err)
	}
}

// counting is a text without an end.
type counting struct{ n int }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	c.n += len(p)
	return len(p), nil
}

func TestSelectors(t *testing.T) {
	for text, ok := range map[string]bool{
		"app in (a,b),!x": true, strings.Repeat("a,", 9_999) + "a": true, strings.Repeat("a,", 10_000) + "a": false, strings.Repeat("a", 65<<10): false,
	} {
		_, err := ParseLabels(text)
		if errors.As(err, new(*ExcessError)) == ok {
			t.Errorf("%.20s of %d bytes: %v", text, len(text), err)
		}
	}
	if _, err := ParseFields(strings.Repeat("a=b,", 10_000)); !errors.As(err, new(*ExcessError)) {
		t.Errorf("fields: %v", err)
	}
}
