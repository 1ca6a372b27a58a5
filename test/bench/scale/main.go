// Command scale predicts what each service of a suite of separate processes needs for a load,
// with the model of package scale and the costs in costs.json. It also measures these costs, and
// checks the model with suites of one, two and three front doors.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/portico-platform/portico/test/bench/internal/scale"
)

// recorded are the costs of the last measurement.
//
//go:embed costs.json
var recorded []byte

// record is the content of costs.json.
type record struct {
	Measured string // when, and on what
	Costs    scale.Costs
}

// settings are the flags.
type settings struct {
	programs, permissions string
	measure, check        string
	duration              time.Duration
	rate                  float64
	load                  scale.Load
	machine               scale.Machine
	replicas              scale.Replicas
}

func main() {
	s := settings{replicas: scale.Replicas{}}
	flag.StringVar(&s.programs, "processes", "bin", "folder with the programs of the services, etcd and nats")
	flag.StringVar(&s.permissions, "nats-permissions", "deploy/nats/permissions.conf", "NATS configuration with the users")
	flag.StringVar(&s.measure, "measure", "", "measure the costs and write them to this file")
	flag.StringVar(&s.check, "check", "", "measure suites with these numbers of front doors, separated by commas, beside the model")
	flag.DurationVar(&s.duration, "duration", 10*time.Second, "duration of each step of a measurement")
	flag.Float64Var(&s.load.Objects, "objects", 100_000, "number of objects")
	flag.Float64Var(&s.load.ObjectBytes, "object-bytes", 6000, "size of an object in bytes")
	flag.Float64Var(&s.load.Watchers, "watchers", 10_000, "number of watchers")
	flag.Float64Var(&s.load.Changes, "changes", 100, "number of changes a second")
	flag.Float64Var(&s.load.Selected, "selected", 0.01, "part of the changes that a watcher receives")
	flag.Float64Var(&s.load.Followed, "followed", 1, "part of the changes that is of types that clients watch or read often")
	flag.Float64Var(&s.rate, "rate", 40, "changes a second of a measurement; a check has half as many again")
	flag.Float64Var(&s.machine.Cores, "cores", 2, "cores of the machine of each replica")
	flag.Float64Var(&s.machine.Memory, "memory", 8<<30, "memory of the machine of each replica in bytes")
	flag.Float64Var(&s.machine.Bytes, "network", 1.25e9, "bytes a second that each replica can receive and send")
	flag.Func("replicas", "replicas of services, for example frontdoor=3,store=2; one of each other", s.addReplicas)
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, &s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func (s *settings) addReplicas(list string) error {
	for item := range strings.SplitSeq(list, ",") {
		name, number, _ := strings.Cut(item, "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a service and its number of replicas", item)
		}
		s.replicas[name] = n
	}
	return nil
}

func run(ctx context.Context, s *settings, out io.Writer) error {
	var r record
	if err := json.Unmarshal(recorded, &r); err != nil && s.measure == "" {
		return err
	}
	if s.measure != "" {
		costs, err := measureCosts(ctx, s)
		if err != nil {
			return err
		}
		r = record{Measured: time.Now().Format(time.DateOnly) + ", each step " + s.duration.String(), Costs: costs}
		text, err := json.MarshalIndent(r, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(s.measure, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	for name := range s.replicas {
		if _, ok := r.Costs[name]; !ok {
			return fmt.Errorf("-replicas: no costs of a service %q", name)
		}
	}
	fmt.Fprintln(out, "costs measured", r.Measured)
	if s.check != "" {
		return check(ctx, s, r.Costs, out)
	}
	if s.measure == "" {
		predict(s, r.Costs, out)
	}
	return nil
}

// predict prints what the load of the flags needs.
func predict(s *settings, costs scale.Costs, out io.Writer) {
	needs := costs.Needs(s.load, s.replicas)
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "each replica of\treplicas\tcores\tmemory\tnetwork")
	for _, n := range needs {
		fmt.Fprintf(table, "%s\t%d\t%.2f\t%.0f MiB\t%.2f MB/s\n", n.Service, n.Replicas, n.CPU, n.Memory/(1<<20), n.Bytes/1e6)
	}
	_ = table.Flush() // to a buffer of the caller or standard output
	fmt.Fprintln(out, "first wall:", scale.FirstWall(needs, s.machine))
	const used = 0.7
	shared := []string{scale.FrontDoor, "store", "authn", "authz", "admission"}
	enough := costs.Enough(s.load, s.machine, used, shared...)
	fmt.Fprintf(out, "for at most %.0f %% of a machine:", 100*used)
	for _, name := range shared {
		switch n, ok := enough[name]; {
		case !ok:
			fmt.Fprintf(out, " no number of %s is enough,", name)
		case n > 1:
			fmt.Fprintf(out, " %s=%d,", name, n)
		}
	}
	fmt.Fprintln(out, " and then", scale.FirstWall(costs.Needs(s.load, enough), s.machine))
}
