package build

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/release"
)

// Version is what a program was built from.
type Version struct {
	Version string `json:"version"`
	// Commit and Date, in RFC 3339, are those of the commit; empty if the program was built outside of a checkout.
	Commit string `json:"commit,omitempty"`
	Date   string `json:"date,omitempty"`
	// Modified reports whether the checkout had changes.
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Kubernetes lists the releases of Kubernetes whose API the program serves.
	Kubernetes []string `json:"kubernetes"`
}

// Current returns the version of this program.
func Current() Version {
	v := Version{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Kubernetes: []string{release.V121.String(), release.V136.String()}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Date = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// Print writes the version in a format: json or yaml, otherwise a line.
func (v Version) Print(w io.Writer, format string) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	case "yaml":
		out, err := yaml.Marshal(v)
		if err == nil {
			_, err = w.Write(out)
		}
		return err
	}
	built := ""
	if v.Commit != "" {
		built = fmt.Sprintf(", commit %.12s of %s", v.Commit, v.Date)
	}
	_, err := fmt.Fprintf(w, "portico %s%s, %s %s, serves the API of Kubernetes %s and %s\n", v.Version, built, v.Go, v.Platform, v.Kubernetes[1], v.Kubernetes[0])
	return err
}
