package checks

import . "github.com/portico-platform/portico/deploy/conformance/suite/harness"

func featureGates() {
	s := Section("Feature gates")

	s.Check("GATE-01", "an unknown gate (removed) is rejected", func(t *T) {
		t.Refuses("--feature-gates=NoSuchGateAtAll=true")
	}, On(Minimal))
	s.Check("GATE-02", "beta gates are on by default: server-side apply works", func(t *T) {
		t.Apply("m", t.In("configmaps")+"/a", ConfigMap("a", "k", "v")).OK()
	}, On(Minimal))
}
