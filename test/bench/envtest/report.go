package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// report prints the medians of all sides, and beside them what part they are of the last one's.
func report(w io.Writer, sides []*side) {
	last := sides[len(sides)-1]
	fmt.Fprint(w, "| |")
	for _, s := range sides {
		fmt.Fprintf(w, " %s |", s.name)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(sides)))
	for _, measure := range measures {
		fmt.Fprintf(w, "| %s |", measure)
		for _, s := range sides {
			value := median(s.results[measure])
			fmt.Fprintf(w, " %.2f s", value)
			if s != last {
				fmt.Fprintf(w, " (%.2f)", value/median(last.results[measure]))
			}
			fmt.Fprint(w, " |")
		}
		fmt.Fprintln(w)
	}
}

// median returns the middle of values, of which there is at least one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
