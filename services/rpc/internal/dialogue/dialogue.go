// Package dialogue lets the two sides of a stream ask and answer one question at a time, such that who asks may
// give up. The next message tells the other side, whose answer is skipped.
package dialogue

import (
	"context"

	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services/deadline"
)

// Message is a received message, or why there is none.
type Message[M any] struct {
	Value M
	// Context ends when the other side has sent a further message: it no longer waits for an answer to this one.
	Context context.Context
	Err     error
}

// Messages are those of the other side. They end with a failure, or with the context.
type Messages[M any] <-chan Message[M]

// Next waits for the next message.
func (c Messages[M]) Next() Message[M] {
	m, open := <-c
	if !open {
		m.Err = status.FromContextError(context.Canceled).Err()
	}
	return m
}

// Receive passes on what receive returns, until it fails or ctx ends.
func Receive[M any](ctx context.Context, receive func() (M, error)) Messages[M] {
	messages := make(chan Message[M])
	go func() {
		defer close(messages)
		for stop := func() {}; ; {
			value, err := receive()
			stop()
			m := Message[M]{Value: value, Err: err}
			m.Context, stop = context.WithCancel(ctx)
			select {
			case messages <- m:
			case <-ctx.Done():
				err = ctx.Err()
			}
			if err != nil {
				stop()
				return
			}
		}
	}()
	return messages
}

// Answers are what the other side answers. The caller asks one question at a time.
type Answers[M any] struct {
	messages  Messages[M]
	abandoned int // questions whose answers have not been received
}

// Await returns the answer to the last question that was sent, or the Timeout of ctx. receive is called until end
// ends, from the first call of Await on.
func (a *Answers[M]) Await(ctx, end context.Context, receive func() (M, error)) (M, error) {
	if a.messages == nil {
		a.messages = Receive(end, receive)
	}
	for {
		select {
		case <-ctx.Done():
			a.abandoned++
			var none M
			return none, deadline.Ended(ctx)
		case m, open := <-a.messages:
			if !open {
				m.Err = status.FromContextError(context.Canceled).Err()
			}
			if m.Err == nil && a.abandoned > 0 {
				a.abandoned--
				continue
			}
			return m.Value, m.Err
		}
	}
}
