package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/portico-platform/portico/services/golden"
	"github.com/portico-platform/portico/services/kit/run/manual"
)

func TestHelpReadsLikeAManualPage(t *testing.T) {
	word := &Contract[int]{
		Name: "word", Serve: func(grpc.ServiceRegistrar, int) {},
		Flags: func(fs *pflag.FlagSet) { PeerFlag(fs, "word") },
	}
	app := App{Name: "portico", About: "Serves words, one after the other, to whoever asks for them in a friendly way and has the patience to wait.", Services: []Service{
		{Name: "speaker", About: "says words", Needs: []Dependency{word}, Flags: func(fs *pflag.FlagSet) {
			fs.String("accent", "none", "`name` of the accent that all words are spoken with, such as none, northern or southern")
			fs.Bool("loud", false, "speak loudly")
		}},
		{Name: "listener", About: "hears words"},
	}}
	var page bytes.Buffer
	if s, err := parse(app, []string{"--help"}, &page); s != nil || err != nil {
		t.Fatalf("got %v, %v", s, err)
	}
	golden.File(t, "help.txt", page.Bytes())
	for line := range strings.Lines(page.String()) {
		if len(line) > manual.Width+1 {
			t.Errorf("longer than %d: %s", manual.Width, line)
		}
	}
}

func TestExitStatus(t *testing.T) {
	for err, want := range map[error]int{
		nil:                                    0,
		errors.New("broken"):                   1,
		Usagef("--x is required"):              2,
		fmt.Errorf("store: %w", Usagef("--x")): 2,
	} {
		if got := ExitStatus(err, "test", os.Stderr); got != want {
			t.Errorf("%v: got %d, want %d", err, got, want)
		}
	}
}

// TestHealthIsLoggedOnce: a check that begins to fail is logged, and one that passes again, however
// often they are requested and by clients that leave.
func TestHealthIsLoggedOnce(t *testing.T) {
	var logs strings.Builder
	var broken atomic.Bool
	h := &Health{log: slog.New(slog.NewTextHandler(&logs, nil))}
	h.Add(Check{Name: "mirror", Probe: func(context.Context) error {
		if broken.Load() {
			return errors.New("the reason")
		}
		return nil
	}})
	router := chi.NewRouter()
	h.Routes(router)
	for _, state := range []bool{false, true, true, false, false, true, false} {
		broken.Store(state)
		for _, path := range []string{"/readyz", "/healthz", "/readyz/mirror"} {
			router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
			left, leave := context.WithCancel(t.Context())
			leave()
			router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(left, http.MethodGet, path, nil))
		}
	}
	if fails, passes := strings.Count(logs.String(), "fails"), strings.Count(logs.String(), "passes again"); fails != 2 || passes != 2 || strings.Count(logs.String(), "the reason") != 2 {
		t.Errorf("logged %d and %d times:\n%s", fails, passes, logs.String())
	}
}
