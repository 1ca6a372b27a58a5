// Package harness is the library of the conformance suite: server start,
// requests, assertions, fixtures and the runner. The checks themselves live
// in packages that register them with Section and Check.
package harness

import "time"

// Check is one statement of the specification, tried against the service.
type Check struct {
	ID      string
	Section string // section of the specification
	Says    string // the sentence, shortened

	run      func(*T)
	config   *Config
	only     string // why the oracle is excused
	slow     bool
	deadline time.Duration
}

var registry []*Check

// SectionOf collects the checks of one section of the specification.
type SectionOf struct{ title string }

// Section starts a section.
func Section(title string) SectionOf { return SectionOf{title} }

// Check registers a check.
func (s SectionOf) Check(id, says string, run func(*T), options ...Option) {
	c := &Check{ID: id, Section: s.title, Says: says, run: run, config: Main, deadline: 60 * time.Second}
	for _, o := range options {
		o(c)
	}
	registry = append(registry, c)
}

// Option changes how a check is run.
type Option func(*Check)

// On runs the check on another server configuration than Main.
func On(config *Config) Option { return func(c *Check) { c.config = config } }

// PlatformOnly excuses the k8s vocabulary: the specification states the API of
// release 1.21 and newer releases differ, for the reason given.
func PlatformOnly(reason string) Option { return func(c *Check) { c.only = reason } }

// Slow marks checks that need minutes or hours; they run only with -slow.
func Slow(deadline time.Duration) Option {
	return func(c *Check) { c.slow, c.deadline = true, deadline }
}
