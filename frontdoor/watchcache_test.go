package frontdoor

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
)

// TestWatchCacheFlags: the flags are those of kube-apiserver, and a log line says that they change nothing.
func TestWatchCacheFlags(t *testing.T) {
	for line, want := range map[string]struct{ refused, logged bool }{
		"":                                    {},
		"--watch-cache":                       {},
		"--watch-cache=false":                 {logged: true},
		"--default-watch-cache-size=0":        {logged: true},
		"--watch-cache-sizes=pods#100,x.y#0":  {logged: true},
		"--watch-cache-sizes=pods":            {refused: true},
		"--watch-cache-sizes=pods#many":       {refused: true},
		"--watch-cache-sizes=pods#1,nodes#-1": {refused: true},
	} {
		var log bytes.Buffer
		w, fs := watchCache{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		w.register(fs)
		if err := fs.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		err := w.check(&run.Node{Flags: fs, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if (err != nil) != want.refused || strings.Contains(log.String(), "have no effect") != want.logged {
			t.Errorf("%s: %v, logged %q", line, err, log.String())
		}
	}
}
