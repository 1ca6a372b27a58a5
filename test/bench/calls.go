package main

import (
	"bufio"
	"net/http"
	"regexp"
	"strconv"
)

// countOfCalls is a line of a service's metrics with the number of calls of a method that other
// services have made.
var countOfCalls = regexp.MustCompile(`^portico_rpc_server_seconds_count\{.*method="/portico\.v1\.([A-Za-z/]+)".*\} ([0-9.e+]+)$`)

// calls returns the calls of each method that a process has answered; none if it has no metrics.
func calls(address string) map[string]int64 {
	counts := map[string]int64{}
	if address == "" {
		return counts
	}
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return counts
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if found := countOfCalls.FindStringSubmatch(lines.Text()); found != nil {
			n, _ := strconv.ParseFloat(found[2], 64)
			counts[found[1]] += int64(n)
		}
	}
	return counts
}
