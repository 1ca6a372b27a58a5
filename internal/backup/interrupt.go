package backup

import (
	"context"
	"fmt"
	"io"
	"time"
)

// stopWait is how long a step that cannot be interrupted may take to end by itself.
const stopWait = time.Second

// copyUntil copies until the source ends or ctx does.
func copyUntil(ctx context.Context, to io.Writer, from io.Reader) (int64, error) {
	return io.Copy(to, interruptible{ctx, from})
}

// interruptible is a reader that fails when ctx ends.
type interruptible struct {
	ctx  context.Context
	from io.Reader
}

// Read implements io.Reader.
func (r interruptible) Read(p []byte) (int, error) {
	if err := interrupted(r.ctx); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// interrupted returns why ctx has ended, nil while it has not.
func interrupted(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("interrupted: %w", context.Cause(ctx))
}

// uninterruptible runs a step of a library that takes no context. When ctx ends, it calls undo and waits
// a moment for the step; then the process has to end, because the step still runs.
func uninterruptible(ctx context.Context, step func() error, undo func()) error {
	ended := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil { // etcd trusts its files
				ended <- fmt.Errorf("%v", p)
			}
		}()
		ended <- step()
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	undo()
	select {
	case <-ended:
	case <-time.After(stopWait):
	}
	return interrupted(ctx)
}
