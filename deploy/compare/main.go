// Command compare sends one corpus of requests to Portico and to the reference server and
// prints the differences. See README.md.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/portico-platform/portico/deploy/compare/internal/verdict"
	"github.com/portico-platform/portico/deploy/internal/servers"
)

//go:embed intended.yaml
var intendedList []byte

// settings are the flags.
type settings struct {
	portico, peer, only, list, results, work string
	examples, parallel                       int
	strict                                   bool
}

func main() {
	s := settings{}
	flag.StringVar(&s.portico, "portico", "bin/portico", "portico program to start")
	flag.StringVar(&s.peer, "peer", "bin/peer", "folder with the apiserver and etcd programs of the reference server")
	flag.StringVar(&s.only, "only", "", "send only the cases whose kind/name matches this regular expression")
	flag.StringVar(&s.list, "intended", "", "file with the intended differences; the built-in list if empty")
	flag.StringVar(&s.results, "json", "", "also write all open differences to this file")
	flag.StringVar(&s.work, "work", "", "keep data and logs of the servers in this folder")
	flag.IntVar(&s.examples, "examples", 3, "number of requests to print for each class of differences")
	flag.IntVar(&s.parallel, "parallel", 2, "number of kinds to compare at the same time")
	flag.BoolVar(&s.strict, "strict", false, "fail when there are open differences")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, &s); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s *settings) error {
	only, err := regexp.Compile(s.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	content := intendedList
	if s.list != "" {
		if content, err = os.ReadFile(s.list); err != nil {
			return err
		}
	}
	intended, err := verdict.ParseIntended(content)
	if err != nil {
		return fmt.Errorf("intended differences: %w", err)
	}
	if s.work == "" {
		if s.work, err = os.MkdirTemp("", "compare-"); err != nil {
			return err
		}
		defer os.RemoveAll(s.work)
	}
	portico, err := start(ctx, servers.StartPortico121, s.portico, s.work)
	defer portico.stop()
	if err != nil {
		return err
	}
	peer, err := start(ctx, servers.StartPeer, s.peer, s.work)
	defer peer.stop()
	if err != nil {
		return err
	}
	report := verdict.NewReport(intended)
	c := &comparison{portico: portico, peer: peer, only: only, parallel: s.parallel, report: report}
	return errors.Join(c.run(ctx), finish(s, report, intended))
}

// finish prints the report. Unused entries of the list make a complete run fail.
func finish(s *settings, report *verdict.Report, intended *verdict.Intended) error {
	failures := []error{report.Print(os.Stdout, s.examples)}
	if s.results != "" {
		content, err := json.MarshalIndent(report.Differences(), "", " ")
		failures = append(failures, err, os.WriteFile(s.results, content, 0o600))
	}
	if s.only == "" {
		failures = append(failures, intended.Unused())
	}
	if s.strict && report.Open > 0 {
		failures = append(failures, fmt.Errorf("%d requests have open differences", report.Open))
	}
	return errors.Join(failures...)
}

// startTimeout bounds the start of a server.
const startTimeout = 2 * time.Minute
