package featuregate

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/portico-platform/portico/services/release"
)

//go:embed gates.txt
var gatesText string

// step is one step in the life of a gate: its stage since a release.
type step struct {
	stage Stage
	since release.Release
	// on is the default. A locked feature has it always.
	on, locked bool
}

// gatesByName returns the steps of each gate, the oldest first.
var gatesByName = sync.OnceValues(func() (map[string][]step, error) {
	found := map[string][]step{}
	for line := range strings.Lines(gatesText) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		for _, word := range words[1:] {
			s, err := parseStep(word)
			if err != nil {
				return nil, fmt.Errorf("gates.txt: %s: %w", words[0], err)
			}
			steps := found[words[0]]
			if s.stage == removed {
				s.on = len(steps) > 0 && steps[len(steps)-1].stage == GA
			}
			found[words[0]] = append(steps, s)
		}
	}
	return found, nil
})

// parseStep parses one step of gates.txt, for example beta:1.22:off.
func parseStep(word string) (s step, err error) {
	parts := strings.Split(word, ":")
	s.stage = Stage(strings.ToUpper(parts[0]))
	switch s.stage {
	case Alpha, Beta, GA, Deprecated, removed:
	default:
		return s, fmt.Errorf("unknown stage in %q", word)
	}
	s.on, s.locked = s.stage != Alpha, s.stage == GA
	if len(parts) < 2 {
		return s, fmt.Errorf("no release in %q", word)
	}
	if s.since, err = release.Of(parts[1]); err != nil {
		return s, err
	}
	for _, difference := range parts[2:] {
		switch difference {
		case "on", "off":
			s.on = difference == "on"
		case "open", "locked":
			s.locked = difference == "locked"
		default:
			return s, fmt.Errorf("unknown difference in %q", word)
		}
	}
	return s, nil
}

// at returns the step of a gate at a release; ok is false before its first one.
func at(steps []step, r release.Release) (s step, ok bool) {
	for _, next := range steps {
		if r.Before(next.since) {
			break
		}
		s, ok = next, true
	}
	return s, ok
}
