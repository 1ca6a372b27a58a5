package run_test

import (
	"context"
	"fmt"

	"github.com/portico-platform/portico/services/kit/run"
)

// Two services in one process. The second uses what the first offers; in separate
// processes, the contract's Dial would connect them.
func ExampleStart() {
	greeting := &run.Contract[func() string]{Name: "greeting"}
	greeter := run.Service{
		Name: "greeter", Offers: []run.Dependency{greeting},
		Start: func(_ context.Context, n *run.Node) error {
			greeting.Offer(n, func() string { return "hello" })
			return nil
		},
	}
	guest := run.Service{
		Name: "guest", Needs: []run.Dependency{greeting},
		Start: func(ctx context.Context, n *run.Node) error {
			greet, err := greeting.Use(ctx, n)
			if err != nil {
				return err
			}
			fmt.Println(greet())
			n.OnStop(func(context.Context) { fmt.Println("bye") })
			return nil
		},
	}
	app := run.App{Name: "example", Services: []run.Service{greeter, guest}}
	running, err := run.Start(context.Background(), app, []string{"--log-level=error"})
	if err != nil {
		fmt.Println(err)
		return
	}
	running.Stop()
	// Output:
	// hello
	// bye
}
