package checks

import (
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func signals() {
	s := Section("Deprecation signals")

	// deprecated returns a deprecated endpoint, and the labels of its gauge.
	deprecated := func() (old string, labels []string) {
		if Vocabulary() == K8s { // since 1.19, and never removed
			return "/api/v1/componentstatuses", []string{`group=""`, `version="v1"`, `resource="componentstatuses"`, `removed_release=""`}
		}
		return "/apis/policy/v1beta1/poddisruptionbudgets", []string{`group="policy"`, `version="v1beta1"`, `resource="poddisruptionbudgets"`, `removed_release="1.25"`}
	}
	s.Check("WARN-01", "Warning response header (RFC 7234 section 5.5) on a request to a deprecated endpoint", func(t *T) {
		old, _ := deprecated()
		h := t.GET(old).Is(200).Header.Get("Warning")
		t.True(strings.HasPrefix(h, "299 "), "a Warning header with code 299, got %q", h)
		t.Contains("Warning header", h, "deprecated")
	})
	s.Check("WARN-02", "no Warning on an endpoint that is not deprecated", func(t *T) {
		t.Eq("Warning header", t.GET(t.In("configmaps")).Is(200).Header.Get("Warning"), "")
	})
	s.Check("WARN-03", "gauge apiserver_requested_deprecated_apis set to 1, with labels", func(t *T) {
		old, labels := deprecated()
		t.GET(old).Is(200)
		var line string
		t.Until(5*time.Second, "the gauge for "+old, func() bool {
			for _, l := range strings.Split(string(t.GET("/metrics").Is(200).Raw), "\n") {
				if strings.HasPrefix(l, "apiserver_requested_deprecated_apis{") && strings.Contains(l, labels[2]) {
					line = l
				}
			}
			return line != ""
		})
		for _, label := range append(labels, `subresource=""`) {
			t.Contains("labels", line, label)
		}
		t.True(strings.HasSuffix(line, " 1"), "the value 1, got %q", line)
	})
}
