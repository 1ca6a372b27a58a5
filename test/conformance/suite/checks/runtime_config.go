package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func runtimeConfig() {
	s := Section("Runtime configuration")

	s.Check("RTC-01", "--runtime-config=<group>/<version>=false disables a version: a core-style group", func(t *T) {
		t.GET(In("default", "autoscaling/v1/horizontalpodautoscalers")).Is(404)
		t.GET("/apis/autoscaling/v1").Is(404)
	}, On(Alt))
	s.Check("RTC-02", "a disabled version is not in the list of groups", func(t *T) {
		for _, g := range t.GET("/apis").Is(200).Obj().List("groups") {
			for _, v := range g.List("versions") {
				t.Ne("a listed version", v.Str("groupVersion"), "batch/v1")
			}
		}
		t.GET(In("default", "batch/v1/jobs")).Is(404)
	}, On(Hooked))
	s.Check("RTC-03", "other groups are not touched", func(t *T) {
		t.GET(In("default", "autoscaling/v1/horizontalpodautoscalers")).Is(200)
	}, On(Hooked))
}
