package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/kit/run"
)

// diary records events in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) want(t *testing.T, lines ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.lines, lines) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(d.lines, "\n  "), strings.Join(lines, "\n  "))
	}
}

// noted returns a service that records its start and stop.
func (d *diary) noted(name string) run.Service {
	return run.Service{Name: name, Start: func(_ context.Context, n *run.Node) error {
		d.note("%s starts", name)
		n.OnExit(func() { d.note("%s exits", name) })
		n.OnStop(func(context.Context) { d.note("%s stops", name) })
		n.OnStop(func(context.Context) { d.note("%s drains", name) })
		n.Go("loop", func(ctx context.Context) error {
			<-ctx.Done()
			d.note("%s ended", name)
			return ctx.Err()
		})
		return nil
	}}
}

func app(services ...run.Service) run.App {
	return run.App{Name: "test", About: "A process of a test.", Services: services}
}

func start(t *testing.T, a run.App, args ...string) *run.Running {
	t.Helper()
	running, err := run.Start(t.Context(), a, append(args, "--log-level=error"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Stop)
	return running
}

func TestServicesStopInReverse(t *testing.T) {
	var d diary
	running := start(t, app(d.noted("a"), d.noted("b")))
	d.want(t, "a starts", "b starts")
	running.Stop()
	running.Stop()
	d.want(t, "a starts", "b starts",
		"b drains", "b stops", "b ended", "a drains", "a stops", "a ended", "b exits", "a exits")
}

func TestAFailedStartStopsTheServicesBefore(t *testing.T) {
	var d diary
	broken := run.Service{Name: "broken", Start: func(context.Context, *run.Node) error { return errors.New("no disk") }}
	_, err := run.Start(t.Context(), app(d.noted("a"), broken, d.noted("never")), []string{"--log-level=error"})
	if err == nil || err.Error() != "broken: no disk" {
		t.Errorf("got error %v", err)
	}
	d.want(t, "a starts", "a drains", "a stops", "a ended", "a exits")
}

func TestAFailingLoopEndsTheProcess(t *testing.T) {
	var d diary
	failing := run.Service{Name: "failing", Start: func(_ context.Context, n *run.Node) error {
		n.Go("mirror", func(context.Context) error { return errors.New("lost") })
		return nil
	}}
	err := run.Run(t.Context(), app(d.noted("a"), failing), []string{"--log-level=error"})
	if err == nil || err.Error() != "failing: mirror: lost" {
		t.Errorf("got error %v", err)
	}
	d.want(t, "a starts", "a drains", "a stops", "a ended", "a exits")
}

func TestAPanickingLoopEndsTheProcess(t *testing.T) {
	panicking := run.Service{Name: "panicking", Start: func(_ context.Context, n *run.Node) error {
		n.Go("loop", func(context.Context) error { panic("nil map") })
		return nil
	}}
	err := run.Run(t.Context(), app(panicking), []string{"--log-level=error", "--log-format=json"})
	if err == nil || !strings.Contains(err.Error(), "panicking: loop panicked: nil map") {
		t.Errorf("got error %v", err)
	}
}

// TestAFailingLoopAbandonsTheStart: a service that waits while starting is canceled when
// one that was started before fails.
func TestAFailingLoopAbandonsTheStart(t *testing.T) {
	failing := run.Service{Name: "failing", Start: func(_ context.Context, n *run.Node) error {
		n.Go("loop", func(context.Context) error { return errors.New("lost") })
		return nil
	}}
	waiting := run.Service{Name: "waiting", Start: func(ctx context.Context, _ *run.Node) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	_, err := run.Start(t.Context(), app(failing, waiting), []string{"--log-level=error"})
	if err == nil || err.Error() != "failing: loop: lost" {
		t.Errorf("got error %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ready := run.Service{Name: "ready", Start: func(context.Context, *run.Node) error { cancel(); return nil }}
	if err := run.Run(ctx, app(ready), []string{"--log-level=error"}); err != nil {
		t.Errorf("got error %v", err)
	}
	// Also while starting.
	waiting := run.Service{Name: "waiting", Start: func(ctx context.Context, _ *run.Node) error { <-ctx.Done(); return ctx.Err() }}
	if err := run.Run(ctx, app(waiting), []string{"--log-level=error"}); err != nil {
		t.Errorf("got error %v", err)
	}
}

func TestAPromisedContractMustBeOffered(t *testing.T) {
	word := &run.Contract[string]{Name: "word"}
	forgetful := run.Service{Name: "forgetful", Offers: []run.Dependency{word}, Start: func(context.Context, *run.Node) error { return nil }}
	_, err := run.Start(t.Context(), app(forgetful), []string{"--log-level=error"})
	if err == nil || !strings.Contains(err.Error(), "without offering word") {
		t.Errorf("got error %v", err)
	}
}

func TestWhatIsOfferedIsNotDialed(t *testing.T) {
	word := &run.Contract[string]{
		Name:  "word",
		Flags: func(fs *pflag.FlagSet) { fs.String("word", "", "a word") },
		Dial:  func(_ context.Context, n *run.Node) (string, error) { return n.Flags.GetString("word") },
	}
	var got string
	user := run.Service{Name: "user", Needs: []run.Dependency{word}, Start: func(ctx context.Context, n *run.Node) (err error) {
		got, err = word.Use(ctx, n)
		return err
	}}
	speaker := run.Service{Name: "speaker", Offers: []run.Dependency{word}, Start: func(_ context.Context, n *run.Node) error {
		word.Offer(n, "spoken")
		return nil
	}}
	start(t, app(speaker, user))
	if got != "spoken" {
		t.Errorf("in one process: got %q", got)
	}
	start(t, app(user), "--word=written")
	if got != "written" {
		t.Errorf("apart: got %q", got)
	}
	if _, err := run.Start(t.Context(), app(speaker, user), []string{"--word=written"}); !errors.Is(err, run.ErrUsage) {
		t.Errorf("a flag for what is in the process: got error %v", err)
	}
}

func TestServicesShareFlags(t *testing.T) {
	sharing := func(name, value string) run.Service {
		return run.Service{
			Name:  name,
			Flags: func(fs *pflag.FlagSet) { fs.String("ca-file", value, "a CA") },
			Start: func(_ context.Context, n *run.Node) error {
				if got, _ := n.Flags.GetString("ca-file"); got != "x" {
					return fmt.Errorf("got %q", got)
				}
				return nil
			},
		}
	}
	start(t, app(sharing("a", ""), sharing("b", "")), "--ca-file=x")
	_, err := run.Start(t.Context(), app(sharing("a", ""), sharing("b", "other")), nil)
	if err == nil || !strings.Contains(err.Error(), "--ca-file is declared twice") {
		t.Errorf("got error %v", err)
	}
}

func TestDefaultsYieldToTheUser(t *testing.T) {
	service := run.Service{
		Name:  "a",
		Flags: func(fs *pflag.FlagSet) { fs.String("given", "", ""); fs.Duration("left", time.Second, "") },
		Start: func(_ context.Context, n *run.Node) error {
			err := errors.Join(n.Default("given", "default"), n.Default("left", "2s"), n.Default("unknown", "x"))
			given, _ := n.Flags.GetString("given")
			left, _ := n.Flags.GetDuration("left")
			if given != "user" || left != 2*time.Second {
				return fmt.Errorf("got %q and %v", given, left)
			}
			return err
		},
	}
	start(t, app(service), "--given=user")
}

// TestFeatureGates: all services of a process have the feature gates of its release, as the flag sets them.
func TestFeatureGates(t *testing.T) {
	for args, want := range map[string]bool{
		"--emulated-version=1.21":                  false,
		"--emulated-version=1.36":                  true,
		"--emulated-version=1.36 --feature-gates=": true,
		"--emulated-version=1.36 --feature-gates=PodTopologyLabelsAdmission=false,AllBeta=true": false,
	} {
		var prepared, got []bool
		has := func(n *run.Node) bool { return n.Gates.On(featuregate.TopologyLabels) }
		one := run.Service{Name: "a", Prepare: func(n *run.Node) { prepared = append(prepared, has(n)) }, Start: func(_ context.Context, n *run.Node) error { got = append(got, has(n)); return nil }}
		other := one
		other.Name = "b"
		start(t, app(one, other), strings.Fields(args)...)
		if both := []bool{want, want}; !slices.Equal(prepared, both) || !slices.Equal(got, both) {
			t.Errorf("%q: %v, %v, want %v", args, prepared, got, want)
		}
	}
	for _, wrong := range []string{"NoSuchGate=true", "PodTopologyLabelsAdmission=perhaps"} {
		if _, err := run.Start(t.Context(), app(), []string{"--emulated-version=1.36", "--feature-gates=" + wrong}); !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), "--feature-gates") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestTheEmulatedReleaseFollowsFromTheVocabulary(t *testing.T) {
	for args, want := range map[string]string{
		"":                 "1.21",
		"--vocabulary=k8s": "1.36",
		"--vocabulary=k8s --emulated-version=1.21": "1.21",
		"--emulated-version=1.36":                  "1.36",
		"--vocabulary=k8s --emulated-version=":     "1.36",
	} {
		var got string
		start(t, app(run.Service{Name: "a", Start: func(_ context.Context, n *run.Node) error { got = n.Release.String(); return nil }}), strings.Fields(args)...)
		if got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
	if _, err := run.Start(t.Context(), app(), []string{"--vocabulary=k8s", "--emulated-version=1.30"}); !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), "--emulated-version") {
		t.Errorf("1.30: %v", err)
	}
}
