package dialogue

import (
	"context"
	"io"
	"testing"
)

// TestAbandonedQuestions: who gives up gets the answer to the next question, and the other side learns by that
// question that it need not answer the first.
func TestAbandonedQuestions(t *testing.T) {
	questions, answers := make(chan int), make(chan int, 2)
	end, stop := context.WithCancel(t.Context())
	defer stop()
	receive := func(from <-chan int) func() (int, error) {
		return func() (int, error) {
			select {
			case n := <-from:
				return n, nil
			case <-end.Done():
				return 0, io.EOF
			}
		}
	}
	go func() {
		asked := Receive(end, receive(questions))
		for m := asked.Next(); m.Err == nil; m = asked.Next() {
			if m.Value == 1 {
				<-m.Context.Done() // the first is answered when nobody waits for it
			}
			answers <- m.Value
		}
	}()
	var a Answers[int]
	hurried, cancel := context.WithCancel(t.Context())
	questions <- 1
	cancel()
	if n, err := a.Await(hurried, end, receive(answers)); err == nil {
		t.Fatalf("the answer to the first question: %d", n)
	}
	questions <- 2
	if n, err := a.Await(t.Context(), end, receive(answers)); n != 2 || err != nil {
		t.Errorf("the answer to the second question: %d, %v", n, err)
	}
	stop()
	if _, err := a.Await(t.Context(), end, receive(answers)); err == nil {
		t.Error("an answer after the end")
	}
}
