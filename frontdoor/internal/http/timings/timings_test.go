package timings

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
)

const path = "/debug/timings"

// stage permits a user with the name admin to have timings.
func stage() *Timings {
	return &Timings{Path: path, Allow: func(_ *request.Request, a services.Attributes) error {
		if a.User.Name != "admin" || a.Verb != "get" || a.Path != path {
			return services.Forbidden("", "", "", "no")
		}
		return nil
	}}
}

func asking(user, value string) *request.Request {
	r := &request.Request{Request: httptest.NewRequest(http.MethodGet, "/version", nil), Verb: "get", User: services.UserInfo{Name: user}}
	if value != "" {
		r.Header.Set("Portico-Server-Timing", value)
	}
	return r
}

// answering takes a step and writes a body in two parts.
func answering(body string) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		r.Enter("authorized")
		r.Leave(nil)
		_, span := tracing.Start(r.Context(), "portico.Store/Get")
		w.WriteHeader(http.StatusAccepted)
		for _, part := range []string{body[:1], body[1:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				return err
			}
		}
		span.End(nil)
		return nil
	}
}

func names(h http.Header) string {
	var all []string
	for _, entry := range h.Values("Server-Timing") {
		name, _, _ := strings.Cut(entry, ";dur=")
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

// TestWhoGetsTimings: those who ask and may.
func TestWhoGetsTimings(t *testing.T) {
	for _, c := range []struct{ what, user, value, want string }{
		{"an administrator asks", "admin", "stages", "total authenticated authorized portico.Store-Get"},
		{"an administrator asks for those of admission only", "admin", "true", ""},
		{"an administrator does not ask", "admin", "", ""},
		{"a user does not ask", "alice", "", ""},
	} {
		w, r := httptest.NewRecorder(), asking(c.user, c.value)
		before := r.Request
		if err := stage().Timed(answering("body"))(w, r); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if got := names(w.Result().Header); got != c.want || w.Code != http.StatusAccepted || w.Body.String() != "body" {
			t.Errorf("%s: %q, %d %q", c.what, got, w.Code, w.Body)
		}
		if r.Request != before || r.Trace != nil {
			t.Errorf("%s: the request of later stages has changed", c.what)
		}
	}
	called := false
	err := stage().Timed(func(http.ResponseWriter, *request.Request) error { called = true; return nil })(httptest.NewRecorder(), asking("alice", "stages"))
	if !services.IsReason(err, services.ReasonForbidden) || called {
		t.Errorf("a user asks: %v, served: %v", err, called)
	}
	w, watch := httptest.NewRecorder(), asking("admin", "stages")
	watch.Verb = "watch"
	if err := stage().Timed(answering("body"))(w, watch); err != nil || names(w.Result().Header) != "" {
		t.Errorf("a watch: %v, %q", err, names(w.Result().Header))
	}
}

// TestErrorsAndLongBodies: an error replaces what was begun and has timings too. A long body is
// sent while it is written, whole.
func TestErrorsAndLongBodies(t *testing.T) {
	w := httptest.NewRecorder()
	err := stage().Timed(func(w http.ResponseWriter, r *request.Request) error {
		_ = answering("begun")(w, r)
		return services.Unavailable("for now")
	})(w, asking("admin", "stages"))
	if err == nil || w.Body.Len() > 0 || !strings.Contains(names(w.Header()), "portico.Store-Get") {
		t.Errorf("%v, %q, %v", err, w.Body, w.Header())
	}
	w = httptest.NewRecorder()
	long := strings.Repeat("0123456789", maxHeld/10+1)
	if err := stage().Timed(answering(long))(w, asking("admin", "stages")); err != nil || w.Body.String() != long || w.Code != http.StatusAccepted {
		t.Errorf("%v, %d bytes, %d", err, w.Body.Len(), w.Code)
	}
	if got := names(w.Result().Header); got != "total authenticated authorized" {
		t.Errorf("%q", got)
	}
	w = httptest.NewRecorder()
	if err := stage().Timed(func(w http.ResponseWriter, r *request.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return http.NewResponseController(w).Flush()
	})(w, asking("admin", "stages")); err != nil || !w.Flushed || w.Code != http.StatusTeapot {
		t.Errorf("%v, %d, flushed: %v", err, w.Code, w.Flushed)
	}
}

// TestOthersPayNothing: a request that does not ask allocates nothing.
func TestOthersPayNothing(t *testing.T) {
	handle := stage().Timed(func(http.ResponseWriter, *request.Request) error { return nil })
	w, r := httptest.NewRecorder(), asking("alice", "")
	if n := testing.AllocsPerRun(1000, func() { _ = handle(w, r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTimed(b *testing.B) {
	for name, value := range map[string]string{"not asked": "", "asked": "stages"} {
		b.Run(name, func(b *testing.B) {
			handle, r := stage().Timed(answering("body")), asking("admin", value)
			b.ReportAllocs()
			for b.Loop() {
				_ = handle(httptest.NewRecorder(), r)
			}
		})
	}
}
