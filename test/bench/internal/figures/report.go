package figures

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is the result of a benchmark: the goals of each part, if there is a peer to
// compare with, and then all figures of all measurements.
type Report struct {
	// Summary describes the conditions of the measurement.
	Summary string
	// Servers are the names of the measured servers, the peer last.
	Servers  []string
	Lines    []Line
	Markdown bool
	// Pairs compares two versions; nil if the servers are no versions.
	Pairs *Pairs
}

// Line is one measurement, with the results of each server.
type Line struct {
	Name, Part string
	Goals      []Goal
	Results    [][]Result
}

// Print writes the report.
func (r *Report) Print(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintln(&out, r.Summary)
	if r.Pairs != nil {
		r.table(&out, "In pairs: "+r.Pairs.Metric.String(), r.Pairs.rows(r.Lines))
	} else if len(r.Servers) > 1 {
		var parts []string
		for _, l := range r.Lines {
			if !slices.Contains(parts, l.Part) {
				parts = append(parts, l.Part)
				r.table(&out, l.Part+" and their goals", r.goals(l.Part))
			}
		}
	}
	for i, server := range r.Servers {
		if rows := r.parts(i, partCPU); len(rows) > 1 {
			r.table(&out, "CPU per operation of each process: "+server, rows)
			r.table(&out, "Reading and writing system calls per operation of each process: "+server, r.parts(i, partSystemCalls))
		}
		if rows := r.calls(i); len(rows) > 1 {
			r.table(&out, "Calls between services per operation: "+server, rows)
		}
	}
	r.table(&out, "All figures", r.figures())
	_, err := w.Write(out.Bytes())
	return err
}

// goals returns the rows of one part: the figures of all servers, the ratio of the first to the
// last, and the goal.
func (r *Report) goals(part string) [][]string {
	rows := [][]string{slices.Concat([]string{"measurement", "figure"}, r.Servers, []string{"ratio", "goal", "met"})}
	for _, l := range r.Lines {
		if l.Part != part {
			continue
		}
		for _, g := range l.Goals {
			row := []string{l.Name, g.metric.String()}
			for _, results := range l.Results {
				row = append(row, g.metric.text(g.metric.overall(results)))
			}
			own, peer := g.metric.overall(l.Results[0]), g.metric.overall(l.Results[len(l.Results)-1])
			met := "no"
			if g.met(own, peer) {
				met = "yes"
			}
			rows = append(rows, append(row, ratio(own, peer), g.String(), met))
		}
	}
	return rows
}

// parts are a row for each measurement, with a figure of each process of a server that has
// several, and their sum.
func (r *Report) parts(server int, figure func(results []Result, part int) string) (rows [][]string) {
	for _, l := range r.Lines {
		results := l.Results[server]
		if len(results[0].Parts) < 2 || results[0].Operations == 0 {
			continue
		}
		if rows == nil {
			head := []string{"measurement", "all"}
			for _, p := range results[0].Parts {
				head = append(head, p.Name)
			}
			rows = append(rows, head)
		}
		row := []string{l.Name, figure(results, allParts)}
		for i := range results[0].Parts {
			row = append(row, figure(results, i))
		}
		rows = append(rows, row)
	}
	return rows
}

// calls are a row for each measurement, with the calls of each method between the services of a
// server.
func (r *Report) calls(server int) [][]string {
	var methods []string
	for _, l := range r.Lines {
		for _, p := range l.Results[server][0].Parts {
			methods = slices.AppendSeq(methods, maps.Keys(p.Calls))
		}
	}
	slices.Sort(methods)
	methods = slices.Compact(methods)
	if len(methods) == 0 {
		return nil
	}
	rows := [][]string{append([]string{"measurement"}, methods...)}
	for _, l := range r.Lines {
		row := []string{l.Name}
		for _, method := range methods {
			row = append(row, perOperation(l.Results[server], func(x *Result) (sum int64) {
				for _, p := range x.Parts {
					sum += p.Calls[method]
				}
				return sum
			}))
		}
		rows = append(rows, row)
	}
	return rows
}

func ratio(a, b float64) string {
	if b <= 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", a/b)
}

// figures returns a row for each measurement and server.
func (r *Report) figures() [][]string {
	head := []string{"measurement", "server"}
	for m := range metrics {
		head = append(head, m.String())
	}
	rows := [][]string{head}
	for _, l := range r.Lines {
		for i, results := range l.Results {
			row := []string{l.Name, r.Servers[i]}
			for m := range metrics {
				text := ""
				if m.applies(results[0]) {
					text = m.text(m.overall(results))
				}
				row = append(row, text)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// table writes rows, of which the first is the header.
func (r *Report) table(out *bytes.Buffer, title string, rows [][]string) {
	if !r.Markdown {
		fmt.Fprintf(out, "\n%s\n", strings.ToUpper(title))
		columns := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(columns, strings.Join(row, "\t"))
		}
		_ = columns.Flush() // writes to a buffer do not fail
		return
	}
	fmt.Fprintf(out, "\n### %s\n\n", title)
	for i, row := range rows {
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(out, "|---|---|%s\n", strings.Repeat("---:|", len(row)-2))
		}
	}
}
