package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/portico-platform/portico/services/kit/retry"
)

// A loop that retries until it succeeds or its context ends.
func ExampleBackoff() {
	left := 2
	try := func() error {
		if left--; left >= 0 {
			return errors.New("not yet")
		}
		return nil
	}
	ctx, pauses := context.Background(), retry.NewBackoff(time.Millisecond, time.Second)
	for {
		err := try()
		if err == nil {
			fmt.Println("done")
			return
		}
		fmt.Println(err)
		if !pauses.Pause(ctx) {
			return
		}
	}
	// Output:
	// not yet
	// not yet
	// done
}
