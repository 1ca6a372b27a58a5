package frontdoor

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestErrorsWithoutHTTPCode: an error whose code is not an HTTP error status gets a
// response instead of a closed connection.
func TestErrorsWithoutHTTPCode(t *testing.T) {
	d := &door{log: slog.New(slog.DiscardHandler), vocabulary: vocabulary.K8s(), codec: wire.New(wire.Config{Vocabulary: vocabulary.K8s()})}
	for code, want := range map[int32]int{-1: 500, 0: 500, 99: 500, 200: 500, 399: 500, 400: 400, 418: 418, 599: 599, 600: 500, 1000: 500, 1 << 30: 500} {
		recorder := httptest.NewRecorder()
		r := &request.Request{Request: httptest.NewRequest(http.MethodGet, "/", nil)}
		d.renderError(&answer{ResponseWriter: recorder}, r, &services.Status{Code: code, Message: "a"})
		if recorder.Code != want {
			t.Errorf("%d: got %d, want %d", code, recorder.Code, want)
		}
	}
}
