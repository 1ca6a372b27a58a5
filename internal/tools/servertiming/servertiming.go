// Package servertiming reads the header Server-Timing of a front door: the whole request, its stages and
// its steps. It makes no requests and prints nothing. docs/operations/tools.md describes the header.
package servertiming

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Stage is a stage or step of a request. Start is missing for those that do not name it.
type Stage struct {
	Name         string   `json:"name"`
	Start        *float64 `json:"startMilliseconds,omitempty"`
	Milliseconds float64  `json:"milliseconds"`
}

// Parse returns the time of the whole request in milliseconds, and its stages. known is false if
// the front door did not add them. Malformed entries are left out.
func Parse(h http.Header) (total float64, stages []Stage, known bool) {
	for _, value := range h.Values("Server-Timing") {
		for entry := range strings.SplitSeq(value, ",") {
			name, parameters, err := mime.ParseMediaType(entry)
			took, wrong := strconv.ParseFloat(parameters["dur"], 64)
			if err != nil || wrong != nil {
				continue
			}
			if name == "total" && !known {
				total, known = took, true
				continue
			}
			if desc := parameters["desc"]; desc != "" && name == "admission-service" {
				name += " " + desc
			} else if desc != "" {
				name = desc
			}
			stage := Stage{Name: name, Milliseconds: took}
			if start, err := strconv.ParseFloat(parameters["start"], 64); err == nil {
				stage.Start = &start
			}
			stages = append(stages, stage)
		}
	}
	return total, stages, known
}
