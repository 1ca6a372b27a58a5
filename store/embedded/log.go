package embedded

import (
	"context"
	"fmt"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// storageVersion is an error that etcd logs every few seconds until its first snapshot.
// It is irrelevant to a member that was never downgraded.
const storageVersion = "failed to update storage version"

// newLogger returns a logger that forwards etcd's errors as errors and its warnings at
// debug level, because a single member without listeners logs some in normal operation. It
// drops all other messages.
func newLogger(log *slog.Logger) *zap.Logger {
	return zap.New(&core{log: log}, zap.WithPanicHook(panicked{}))
}

// panicked panics with the error of a message and not only with its text.
type panicked struct{}

// OnWrite implements zapcore.CheckWriteHook.
func (panicked) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			panic(fmt.Errorf("%s: %w", e.Message, err))
		}
	}
	panic(e.Message)
}

// core is a zap core that writes to slog.
type core struct {
	log    *slog.Logger
	fields []zapcore.Field
}

func level(e zapcore.Entry) slog.Level {
	if e.Level >= zapcore.ErrorLevel && e.Message != storageVersion {
		return slog.LevelError
	}
	return slog.LevelDebug
}

func (c *core) Enabled(l zapcore.Level) bool {
	return l >= zapcore.WarnLevel
}

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{log: c.log, fields: append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && c.log.Enabled(context.Background(), level(e)) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(values)
	}
	attrs := make([]slog.Attr, 0, len(values.Fields))
	for name, value := range values.Fields {
		attrs = append(attrs, slog.Any(name, value))
	}
	c.log.LogAttrs(context.Background(), level(e), "etcd: "+e.Message, attrs...)
	return nil
}

func (c *core) Sync() error { return nil }

var _ zapcore.Core = (*core)(nil)
