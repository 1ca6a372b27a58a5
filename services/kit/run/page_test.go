package run

import (
	"bytes"
	"errors"
	"fmt"
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
