package request

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
)

// TestBodiesAreWeighed: a body of many empty objects takes a large part of its user's share, because
// decoding it takes many times its bytes, but never all of it. Text takes what it is.
func TestBodiesAreWeighed(t *testing.T) {
	const most = 3 << 20
	values := ledger.Body.Values
	for what, c := range map[string]struct {
		body  string
		fit   int // bodies at once
		share int64
	}{
		"objects":   {`{"a":[` + strings.Repeat(`{},`, values/2-10) + `{}]}`, 1, 64 << 20},
		"lists":     {`{"a":[` + strings.Repeat(`[],`, values/2-10) + `[]]}`, 1, 64 << 20},
		"numbers":   {`{"a":[` + strings.Repeat(`1,`, values-10) + `1]}`, 1, 64 << 20},
		"text":      {`{"a":"` + strings.Repeat("x", most-100) + `"}`, 10, 64 << 20},
		"few bytes": {`{"a":[` + strings.Repeat(`{},`, 10_000) + `{}]}`, 100, 64 << 20},
	} {
		memory := ledger.New(4 * c.share)
		var held []*Request
		fits := func() bool {
			r := &Request{Request: httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body)), Verb: "create",
				User: services.UserInfo{Name: what}}
			_ = r.Receive(httptest.NewRecorder(), memory)
			held = append(held, r)
			_, err := r.ReadBody(nil)
			if err != nil && !services.IsReason(err, services.ReasonTooManyRequests) {
				t.Errorf("%s: %v", what, err)
			}
			return err == nil
		}
		n := 0
		for n <= c.fit && fits() {
			n++
		}
		if n < c.fit || c.fit < 100 && n > c.fit {
			t.Errorf("%s: %d bodies at once, want %d", what, n, c.fit)
		}
		for _, r := range held {
			r.Memory.Release()
		}
		if held = nil; !fits() {
			t.Errorf("%s: memory is not released", what)
		}
	}
}

// TestDecodingIsCharged: a user can have one body decoded at once that takes as much as possible, and
// always has one. Without a limiter nothing is charged.
func TestDecodingIsCharged(t *testing.T) {
	memory := ledger.New(256 << 20)
	received := func() *Request {
		r := &Request{Request: httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("\n", int(ledger.Body.Bytes)))), Verb: "create",
			User: services.UserInfo{Name: "mallory"}}
		_ = r.Receive(httptest.NewRecorder(), memory)
		return r
	}
	first := received()
	if err := first.Charge(1 << 40); err != nil {
		t.Fatalf("the first: %v", err)
	}
	second := &Request{Request: httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")), Verb: "create", User: first.User}
	_ = second.Receive(httptest.NewRecorder(), memory)
	if err := second.Charge(32 << 20); !services.IsReason(err, services.ReasonTooManyRequests) {
		t.Errorf("a second at once: %v", err)
	}
	first.Memory.Release()
	if err := second.Charge(32 << 20); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := (&Request{}).Charge(1 << 40); err != nil {
		t.Errorf("without a limiter: %v", err)
	}
}
