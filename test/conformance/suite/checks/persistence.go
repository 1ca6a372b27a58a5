package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func persistence() {
	s := Section("Persistence")

	s.Check("PERS-01", "serialized state is in the backing store: objects outlive a restart unchanged", func(t *T) {
		before := t.Notes.Map("configmap")
		t.Eq("the object", t.GET(In("default", "configmaps")+"/kept").Is(200).Obj(), before)
	}, On(Restarted))
	s.Check("PERS-02", "an object deleted before the restart stays deleted", func(t *T) {
		t.GET(In("default", "configmaps") + "/dropped").Is(404)
	}, On(Restarted))
	s.Check("PERS-03", "a list version from before the restart can be watched from, or gets 410", func(t *T) {
		w := t.TryWatch(In("default", "configmaps") + "?timeoutSeconds=3&resourceVersion=" + Esc(t.Notes.Str("version")))
		t.True(w.Resp.StatusCode == 200 || w.Resp.StatusCode == 410, "status 200 or 410, got %d", w.Resp.StatusCode)
	}, On(Restarted))
}
