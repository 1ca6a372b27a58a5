package verdict

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Counts is the outcome of a run.
type Counts struct {
	// Requests counts the compared requests: Agreeing ones had the same response, Intended
	// ones only differences in the list, Open ones others, too.
	Requests, Agreeing, Intended, Open int
}

// Report collects the differences of a run.
type Report struct {
	Counts
	intended *Intended
	open     []Difference
}

// NewReport returns a report that omits intended differences.
func NewReport(intended *Intended) *Report { return &Report{intended: intended} }

// Add adds the differences of one request.
func (r *Report) Add(differences []Difference) {
	r.Requests++
	if len(differences) == 0 {
		r.Agreeing++
		return
	}
	open := slices.DeleteFunc(differences, r.intended.Covers)
	if len(open) == 0 {
		r.Intended++
		return
	}
	r.Open++
	r.open = append(r.open, open...)
}

// Differences returns the open ones.
func (r *Report) Differences() []Difference { return r.open }

// class groups differences that probably have the same cause.
type class struct{ path, portico, peer string }

// positions matches list indices in a path.
var positions = regexp.MustCompile(`\[\d+\]`)

// maxShown is the maximum length of a printed value.
const maxShown = 240

// Print writes the open differences by class, the largest first, each with at most
// a number of examples, and then the counts.
func (r *Report) Print(w io.Writer, examples int) error {
	members := map[class][]Difference{}
	for _, d := range r.open {
		c := class{positions.ReplaceAllString(d.Path, "[]"), short(d.Portico), short(d.Peer)}
		members[c] = append(members[c], d)
	}
	classes := slices.SortedFunc(maps.Keys(members), func(a, b class) int {
		return cmp.Or(len(members[b])-len(members[a]), strings.Compare(a.path, b.path), strings.Compare(a.portico, b.portico), strings.Compare(a.peer, b.peer))
	})
	var out strings.Builder
	for _, c := range classes {
		fmt.Fprintf(&out, "%d x %s\n    portico: %s\n    peer:    %s\n", len(members[c]), c.path, c.portico, c.peer)
		for _, d := range members[c][:min(examples, len(members[c]))] {
			fmt.Fprintf(&out, "    at %s %s\n", d.Kind, d.Step)
		}
	}
	fmt.Fprintf(&out, "%d requests, %d agreeing, %d intended, %d open in %d classes\n", r.Requests, r.Agreeing, r.Intended, r.Open, len(classes))
	_, err := io.WriteString(w, out.String())
	return err
}

func short(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "…"
	}
	return cmp.Or(text, "nothing")
}
