package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/kit/run"
)

// Control sequences of terminals.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// minInterval bounds how often top asks.
const minInterval = 100 * time.Millisecond

func (s *session) top() *cobra.Command {
	var once bool
	var interval time.Duration
	c := &cobra.Command{
		Use: "top", Short: "Shows rates, latencies, requests in flight, watches and lag of a running suite", Args: cobra.NoArgs,
		Long: "Shows rates, latencies, requests in flight, watches and lag of a running suite, until q is pressed. With --once, or if the output " +
			"is not a terminal, it measures one interval and prints it.",
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < minInterval {
				return run.Usagef("--interval: %v is less than %v", interval, minInterval)
			}
			client, err := s.client()
			if err != nil {
				return err
			}
			screen, ok := s.out.(*os.File)
			if once || s.output == "json" || s.output == "yaml" || !ok || !term.IsTerminal(int(screen.Fd())) {
				return s.topOnce(c.Context(), client, interval)
			}
			return topLive(c.Context(), client, interval, screen)
		},
	}
	c.Flags().BoolVar(&once, "once", false, "measure one interval, print it and exit")
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between two measurements")
	return c
}

// measure asks the front door.
func measure(ctx context.Context, client rest.Interface) (snapshot, error) {
	var now snapshot
	var processes struct {
		Items []process `json:"items"`
	}
	err := errors.Join(get(ctx, client, "/processes", nil, &processes), get(ctx, client, "/watches", nil, &now.watches))
	now.at, now.processes = time.Now(), processes.Items
	return now, err
}

func (s *session) topOnce(ctx context.Context, client rest.Interface, interval time.Duration) error {
	before, err := measure(ctx, client)
	if err != nil {
		return err
	}
	if !retry.Pause(ctx, interval) {
		return ctx.Err()
	}
	after, err := measure(ctx, client)
	if err != nil {
		return err
	}
	r := compare(before, after)
	return s.print(r, func(w io.Writer) error { return r.write(w, after.at) })
}

// topLive draws the report in each interval until q or Ctrl-C is pressed. Whatever ends it, the
// terminal is as before.
func topLive(ctx context.Context, client rest.Interface, interval time.Duration, screen *os.File) error {
	before, err := measure(ctx, client)
	if err != nil {
		return err
	}
	state, err := term.MakeRaw(int(screen.Fd()))
	if err != nil {
		return err
	}
	fmt.Fprint(screen, enterScreen)
	defer func() {
		fmt.Fprint(screen, leaveScreen)
		_ = term.Restore(int(screen.Fd()), state)
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go readKeys(screen, cancel)
	for {
		if !retry.Pause(ctx, interval) {
			return nil
		}
		after, err := measure(ctx, client)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			draw(screen, "the front door does not respond: "+plain.Escape(err.Error())+"\n") // and is asked again
			continue
		}
		var text strings.Builder
		if err := compare(before, after).write(&text, after.at); err != nil {
			return err
		}
		draw(screen, text.String())
		before = after
	}
}

// readKeys calls quit when q or Ctrl-C is pressed, or when the terminal is gone.
func readKeys(terminal io.Reader, quit func()) {
	const interrupt = 3 // Ctrl-C
	defer quit()
	key := make([]byte, 1)
	for {
		if n, err := terminal.Read(key); err != nil || n == 1 && (key[0] == 'q' || key[0] == interrupt) {
			return
		}
	}
}

// draw writes the lines that fit over what was there.
func draw(screen *os.File, text string) {
	width, height, err := term.GetSize(int(screen.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	lines := strings.Split("portico top - "+time.Now().Format(time.TimeOnly)+" - q ends\n"+text, "\n")
	var out strings.Builder
	out.WriteString(home)
	for i, line := range lines[:min(len(lines), height)] {
		if i > 0 {
			out.WriteString("\r\n")
		}
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width])
		}
		out.WriteString(line + clearLine)
	}
	fmt.Fprint(screen, out.String()+clearBelow)
}
