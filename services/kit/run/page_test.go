package run

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

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

func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	logs, err := newLogs(&out, "text", slog.LevelInfo)
	if err != nil {
		t.Fatal(err)
	}
	log := logs("store")
	log.Debug("not shown")
	log.Info("mirror is ready", "revision", 12, "took", "1 s")
	logs("hub").With("a", 1).WithGroup("g").Warn("two\nlines", "b", "2\n3")
	want := `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO  store: mirror is ready revision=12 took="1 s"
\S+ WARN  hub: two\\nlines a=1 g.b="2\\n3"
$`
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("got\n%s", out.String())
	}
}

func TestExitStatus(t *testing.T) {
	for err, want := range map[error]int{
		nil:                                    0,
		errors.New("broken"):                   1,
		Usagef("--x is required"):              2,
		fmt.Errorf("store: %w", Usagef("--x")): 2,
	} {
		if got := exitStatus("test", err); got != want {
			t.Errorf("%v: got %d, want %d", err, got, want)
		}
	}
}
