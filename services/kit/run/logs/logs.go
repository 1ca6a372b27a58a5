// Package logs writes the log of a process: lines of text or JSON, with the trace of the
// request that they are about.
package logs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/portico-platform/portico/services/kit/tracing"
)

// lineHandler writes records as readable lines that programs can parse:
//
//	2026-11-20T10:26:55.123Z INFO  store: mirror is ready revision=12
type lineHandler struct {
	service string
	level   slog.Level
	out     *lineWriter
	attrs   slog.Handler // writes the attributes, as key=value, to out.line
}

// lineWriter is shared by the handlers of all services. mu guards line and writes.
type lineWriter struct {
	mu   sync.Mutex
	line bytes.Buffer
	to   io.Writer
}

// New returns a function that returns the logger of a service.
func New(to io.Writer, format string, level slog.Level) (func(service string) *slog.Logger, error) {
	switch format {
	case "text":
		out := &lineWriter{to: to}
		attrs := slog.NewTextHandler(&out.line, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutHead})
		return func(service string) *slog.Logger {
			return slog.New(tracing.LogHandler(lineHandler{service: service, level: level, out: out, attrs: attrs}))
		}, nil
	case "json":
		log := slog.New(tracing.LogHandler(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level})))
		return func(service string) *slog.Logger { return log.With("service", service) }, nil
	}
	return nil, fmt.Errorf("unknown format %q: use text or json", format)
}

func (h lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h lineHandler) Handle(ctx context.Context, r slog.Record) error {
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	line := &h.out.line
	line.Reset()
	fmt.Fprintf(line, "%s %-5s %s: %s ", r.Time.UTC().Format("2006-01-02T15:04:05.000Z"), r.Level, h.service, OneLine(r.Message))
	r.Time = time.Time{} // the attributes' handler omits a zero time
	if err := h.attrs.Handle(ctx, r); err != nil {
		return err
	}
	_, err := h.out.to.Write(append(bytes.TrimRight(line.Bytes(), " \n"), '\n'))
	return err
}

func (h lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = h.attrs.WithAttrs(attrs)
	return h
}

func (h lineHandler) WithGroup(name string) slog.Handler {
	h.attrs = h.attrs.WithGroup(name)
	return h
}

// withoutHead drops the level and the message, which are at the start of the line.
func withoutHead(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// OneLine returns a message with its line breaks escaped.
func OneLine(message string) []byte {
	return bytes.ReplaceAll([]byte(message), []byte("\n"), []byte(`\n`))
}

var _ slog.Handler = lineHandler{}
