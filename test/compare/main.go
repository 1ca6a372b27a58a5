// Command compare sends one corpus of requests to Portico and to the reference server and
// prints the differences. See README.md.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/portico-platform/portico/internal/servers"
	"github.com/portico-platform/portico/test/compare/internal/verdict"
)

//go:embed intended
var intendedLists embed.FS

// settings are the flags.
type settings struct {
	portico, peer, release, only, list, results, work string
	examples, parallel, random                        int
	seed                                              uint64
	schemas                                           time.Duration
	strict                                            bool
}

// defaultSeed is that of runs that try something else each time they are prolonged.
const defaultSeed = 1

func main() {
	s := settings{}
	flag.StringVar(&s.portico, "portico", "bin/portico", "portico program to start")
	flag.StringVar(&s.peer, "peer", "bin/peer", "folder with the apiserver and etcd programs of the reference server")
	flag.StringVar(&s.only, "only", "", "send only the cases whose kind/name matches this regular expression")
	flag.StringVar(&s.release, "release", "1.36", "release that portico emulates: 1.21 or 1.36")
	flag.StringVar(&s.list, "intended", "", "file with the intended differences; the built-in lists if empty")
	flag.StringVar(&s.results, "json", "", "also write all open differences to this file")
	flag.StringVar(&s.work, "work", "", "keep data and logs of the servers in this folder")
	flag.IntVar(&s.examples, "examples", 3, "number of requests to print for each class of differences")
	flag.IntVar(&s.parallel, "parallel", 2, "number of kinds to compare at the same time")
	flag.IntVar(&s.random, "random", 0, "send this number of random sequences of requests in place of the corpus")
	flag.DurationVar(&s.schemas, "schemas", 0, "for this time, send objects of random schemas in place of the corpus; at most -random of them if set")
	flag.Uint64Var(&s.seed, "seed", defaultSeed, "the random sequences to send; of random schemas, the first seed")
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
	intended, err := s.intended()
	if err != nil {
		return fmt.Errorf("intended differences: %w", err)
	}
	if s.work == "" {
		if s.work, err = os.MkdirTemp("", "compare-"); err != nil {
			return err
		}
		defer os.RemoveAll(s.work)
	}
	both := releaseFlags(s.release)
	portico, err := start(ctx, func() (*servers.Server, error) {
		return servers.StartPortico(s.portico, s.work, append(both, "--emulated-version="+s.release)...)
	})
	defer portico.stop()
	if err != nil {
		return err
	}
	peer, err := start(ctx, func() (*servers.Server, error) { return servers.StartPeer(s.peer, s.work, both...) })
	defer peer.stop()
	if err != nil {
		return err
	}
	report := verdict.NewReport(intended)
	c := &comparison{portico: portico, peer: peer, only: only, parallel: s.parallel, older: s.release == olderRelease, report: report}
	if s.random > 0 || s.schemas > 0 {
		return errors.Join(s.randomly(ctx, &randomly{comparison: c, intended: intended}), s.failure(report))
	}
	return errors.Join(c.run(ctx), finish(s, report, intended))
}

// randomly sends random sequences.
func (s *settings) randomly(ctx context.Context, r *randomly) (err error) {
	if s.schemas > 0 {
		r.prefix = schemasPrefix
		if r.next, err = s.randomSchemas(); err != nil {
			return err
		}
		return r.run(ctx)
	}
	r.prefix = "random/"
	if r.next, err = s.sequences(); err != nil {
		return err
	}
	if err := r.define(ctx); err != nil {
		return err
	}
	return r.run(ctx)
}

// intended reads the list of the release and the one of both.
func (s *settings) intended() (*verdict.Intended, error) {
	if s.list != "" {
		content, err := os.ReadFile(s.list)
		if err != nil {
			return nil, err
		}
		return verdict.ParseIntended(content)
	}
	var lists [][]byte
	names := []string{"both", s.release}
	switch {
	case s.schemas > 0:
		names = append(names, "schemas")
	case s.random > 0:
		names = append(names, "random")
	}
	for _, name := range names {
		content, err := intendedLists.ReadFile("intended/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		lists = append(lists, content)
	}
	return verdict.ParseIntended(lists...)
}

// releaseFlags returns the flags with which both servers serve all types that are not alpha,
// if they can have the same release.
func releaseFlags(release string) []string {
	if release == olderRelease {
		return nil // the beta versions of 1.21 are other ones
	}
	return []string{"--runtime-config=api/beta=true", "--feature-gates=ClusterTrustBundle=true,CoordinatedLeaderElection=true"}
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
	return errors.Join(append(failures, s.failure(report))...)
}

// failure returns an error if open differences are one.
func (s *settings) failure(report *verdict.Report) error {
	if s.strict && report.Open > 0 {
		return fmt.Errorf("%d requests have open differences", report.Open)
	}
	return nil
}

// olderRelease is the release of Portico that is not the one of the reference server.
const olderRelease = "1.21"

// startTimeout bounds the start of a server.
const startTimeout = 2 * time.Minute
