package logs

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	loggers, err := New(&out, "text", slog.LevelInfo)
	if err != nil {
		t.Fatal(err)
	}
	log := loggers("store")
	log.Debug("not shown")
	log.Info("mirror is ready", "revision", 12, "took", "1 s")
	loggers("hub").With("a", 1).WithGroup("g").Warn("two\nlines", "b", "2\n3")
	want := `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO  store: mirror is ready revision=12 took="1 s"
\S+ WARN  hub: two\\nlines a=1 g.b="2\\n3"
$`
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("got\n%s", out.String())
	}
}

// TestLinesShowTheTrace: a line about a sampled request names its trace, in both formats
// and after attributes were added; all other lines do not.
func TestLinesShowTheTrace(t *testing.T) {
	sampled := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled}))
	unsampled := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	const id = "01000000000000000000000000000000"
	for format, want := range map[string]string{"text": "a=1 trace_id=" + id + " span_id=0200000000000000\n",
		"json": `"a":1,"trace_id":"` + id + `","span_id":"0200000000000000"}`} {
		var out bytes.Buffer
		loggers, err := New(&out, format, slog.LevelInfo)
		if err != nil {
			t.Fatal(err)
		}
		log := loggers("store").With("a", 1)
		log.InfoContext(sampled, "one")
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %q does not show %q", format, out.String(), want)
		}
		out.Reset()
		for _, ctx := range []context.Context{unsampled, t.Context()} {
			log.InfoContext(ctx, "one")
		}
		if strings.Contains(out.String(), "trace_id") {
			t.Errorf("%s: %q shows a trace", format, out.String())
		}
	}
}
