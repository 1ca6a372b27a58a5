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
	job := func(t *T, path string) Obj {
		return t.POST(path, `{apiVersion: batch/v1, kind: Job, metadata: {generateName: job-}, spec: {suspend: true, ttlSecondsAfterFinished: 5,
  template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}`).OK().Obj()
	}
	s.Check("GATE-03", "alpha gates are off by default: their fields are not kept", func(t *T) {
		o := job(t, t.In("batch/v1/jobs"))
		t.True(!o.Has("spec.suspend"), "no field suspend in %v", o.Map("spec"))
		t.Eq("ttlSecondsAfterFinished, of a beta gate", o.Num("spec.ttlSecondsAfterFinished"), 5)
	}, On(Minimal), PlatformOnly("newer releases have the feature"))
	s.Check("GATE-04", "an alpha gate can be turned on, a beta gate off", func(t *T) {
		o := job(t, t.In("batch/v1/jobs"))
		t.Eq("suspend", o.Bool("spec.suspend"), true)
		t.True(!o.Has("spec.ttlSecondsAfterFinished"), "no field ttlSecondsAfterFinished in %v", o.Map("spec"))
	}, On(NoApply))
	s.Check("GATE-05", "disabling a gate that is GA fails", func(t *T) {
		t.Refuses("--feature-gates=WatchBookmark=false")
	}, On(Minimal), PlatformOnly("gone from newer releases"))
	s.Check("GATE-06", "a value that is none is refused", func(t *T) {
		t.Refuses("--feature-gates=ServerSideApply=perhaps")
	}, On(Minimal))
}
