package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

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
	s.Check("GATE-07", "alpha gates are off by default: pods are not debugged, autoscalers scale neither to nothing nor by containers", func(t *T) {
		t.POST(t.In("pods"), Pod("a")).OK()
		t.GET(t.In("pods") + "/a/ephemeralcontainers").Is(404)
		o := t.PATCH(MergePatch, t.In("pods")+"/a", `{spec: {ephemeralContainers: [{name: e, image: e}]}}`).OK().Obj()
		t.True(!o.Has("spec.ephemeralContainers"), "no ephemeral containers, got %v", o.At("spec.ephemeralContainers"))
		scaler := func(spec string) any {
			return `{apiVersion: autoscaling/v2beta2, kind: HorizontalPodAutoscaler, metadata: {generateName: a-}, spec: {scaleTargetRef: {kind: Deployment, name: a, apiVersion: apps/v1}, maxReplicas: 2, ` + spec + `}}`
		}
		path := t.In("autoscaling/v2beta2/horizontalpodautoscalers")
		t.POST(path, scaler(`minReplicas: 0`)).Status(422, "Invalid")
		t.POST(path, scaler(`metrics: [{type: ContainerResource, containerResource: {name: cpu, container: a, target: {type: Utilization, averageUtilization: 5}}}]`)).Status(422, "Invalid")
		t.POST(path, scaler(`minReplicas: 1`)).OK()
		t.POST(t.In("resourcequotas"), `{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {pods: 1}, scopes: [CrossNamespacePodAffinity]}}`).Status(422, "Invalid")
	}, On(Minimal), PlatformOnly("newer releases have the features"))
	s.Check("GATE-08", "alpha gates can be turned on: pods can be debugged, autoscalers scale to nothing", func(t *T) {
		t.POST(t.In("pods"), Pod("a")).OK()
		o := t.PATCH(MergePatch, t.In("pods")+"/a/ephemeralcontainers", `{spec: {ephemeralContainers: [{name: e, image: e}]}}`).OK().Obj()
		t.Eq("ephemeral container", o.Str("spec.ephemeralContainers.0.name"), "e")
		t.POST(t.In("autoscaling/v2beta2/horizontalpodautoscalers"), `{apiVersion: autoscaling/v2beta2, kind: HorizontalPodAutoscaler, metadata: {name: a},
  spec: {scaleTargetRef: {kind: Deployment, name: a, apiVersion: apps/v1}, minReplicas: 0, maxReplicas: 2,
    metrics: [{type: External, external: {metric: {name: queue}, target: {type: Value, value: 1}}}]}}`).OK()
	}, On(NoApply), PlatformOnly("newer releases have other gates"))
}
