package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func admission() {
	s := Section("Admission plugins")

	s.Check("ADM-01", "CertificateSubjectRestriction: apiserver-client with group system:masters is rejected", func(t *T) {
		t.POST(CSRs, t.CSR(SignerClient, ClientUsages, Request{CN: "root", Orgs: []string{"system:masters"}})).Is(403)
		t.POST(CSRs, t.CSR(SignerClient, ClientUsages, Request{CN: "root", Orgs: []string{"x", "system:masters", "y"}})).Is(403)
	})
	s.Check("ADM-02", "DefaultIngressClass: sets the default class on creation", func(t *T) {
		IngressClasses.Lock()
		defer IngressClasses.Unlock()
		name := t.IngressClass("true")
		defer t.DELETE(All("networking.platform.io/v1/ingressclasses")+"/"+name, nil)
		t.Settle()
		o := t.POST(t.In("networking.platform.io/v1/ingresses"), Ingress("a")).OK().Obj()
		t.Eq("spec.ingressClassName", o.Str("spec.ingressClassName"), name)
		o = t.POST(t.In("networking.platform.io/v1/ingresses"), Ingress("b").Set("spec.ingressClassName", "own")).OK().Obj()
		t.Eq("spec.ingressClassName of an Ingress with a class", o.Str("spec.ingressClassName"), "own")
	})
	s.Check("ADM-03", "DefaultIngressClass: rejects creation if several are marked default", func(t *T) {
		IngressClasses.Lock()
		defer IngressClasses.Unlock()
		a, b := t.IngressClass("true"), t.IngressClass("true")
		defer t.DELETE(All("networking.platform.io/v1/ingressclasses")+"/"+a, nil)
		defer t.DELETE(All("networking.platform.io/v1/ingressclasses")+"/"+b, nil)
		t.Settle()
		t.POST(t.In("networking.platform.io/v1/ingresses"), Ingress("a")).Is(403)
		t.POST(t.In("networking.platform.io/v1/ingresses"), Ingress("b").Set("spec.ingressClassName", a)).OK()
	}, PlatformOnly("newer releases choose the newest default class (since 1.28 a tie is no error)"))
	s.Check("ADM-04", "DefaultStorageClass: sets the default storage class on creation", func(t *T) {
		StorageClasses.Lock()
		defer StorageClasses.Unlock()
		name := t.StorageClass("true")
		defer t.DELETE(All("storage.platform.io/v1/storageclasses")+"/"+name, nil)
		t.Settle()
		o := t.POST(t.In("persistentvolumeclaims"), Claim("a")).OK().Obj()
		t.Eq("spec.storageClassName", o.Str("spec.storageClassName"), name)
		o = t.POST(t.In("persistentvolumeclaims"), Claim("b").Set("spec.storageClassName", "own")).OK().Obj()
		t.Eq("spec.storageClassName of a claim with a class", o.Str("spec.storageClassName"), "own")
	})
	s.Check("ADM-05", "DefaultStorageClass: rejects creation if several are default", func(t *T) {
		StorageClasses.Lock()
		defer StorageClasses.Unlock()
		a, b := t.StorageClass("true"), t.StorageClass("true")
		defer t.DELETE(All("storage.platform.io/v1/storageclasses")+"/"+a, nil)
		defer t.DELETE(All("storage.platform.io/v1/storageclasses")+"/"+b, nil)
		t.Settle()
		t.POST(t.In("persistentvolumeclaims"), Claim("a")).Is(403)
	}, PlatformOnly("since 1.26 the newest default class is used"))
	s.Check("ADM-06", "DefaultTolerationSeconds: adds not-ready and unreachable NoExecute tolerations, 5 minutes", func(t *T) {
		t.PodReady()
		o := t.POST(t.In("pods"), Pod("a")).OK().Obj()
		t.Eq("seconds for not-ready", TolerationSeconds(o, "node.platform.io/not-ready"), []float64{300})
		t.Eq("seconds for unreachable", TolerationSeconds(o, "node.platform.io/unreachable"), []float64{300})
	})
	s.Check("ADM-07", "DefaultTolerationSeconds can be disabled", func(t *T) {
		o := t.POST(t.In("pods"), Pod("a")).OK().Obj()
		t.Eq("seconds for not-ready", len(TolerationSeconds(o, "node.platform.io/not-ready")), 0)
	}, On(Alt))
	s.Check("ADM-08", "AlwaysPullImages: forces image pull policy Always on every new pod", func(t *T) {
		o := t.POST(t.In("pods"), Pod("a").Set("spec.initContainers", []Obj{{"name": "init", "image": "registry.example.com/i:1", "imagePullPolicy": "Never"}})).OK().Obj()
		t.Eq("imagePullPolicy", o.Str("spec.containers.0.imagePullPolicy"), "Always")
		t.Eq("imagePullPolicy of the init container", o.Str("spec.initContainers.0.imagePullPolicy"), "Always")
	}, On(Alt))
	s.Check("ADM-09", "AlwaysDeny: rejects all requests that pass admission", func(t *T) {
		t.POST("/api/v1/namespaces", `{apiVersion: v1, kind: Namespace, metadata: {name: x}}`).Is(403)
		t.POST("/api/v1/nodes", `{apiVersion: v1, kind: Node, metadata: {name: x}}`).Is(403)
	}, On(Deny))
	s.Check("ADM-10", "MutatingAdmissionWebhook: a webhook may change the object", func(t *T) {
		t.Webhook(Hook{Mutating: true, Handle: func(Obj) Obj {
			return JSONPatchReply(`[{"op": "add", "path": "/metadata/labels", "value": {"touched": "yes"}}]`)
		}})
		t.Until(10*time.Second, "a created ConfigMap carries the label of the webhook", func() bool {
			return t.CM(t.Name("cm")).Str("metadata.labels.touched") == "yes"
		})
	})
	s.Check("ADM-11", "ValidatingAdmissionWebhook: any admission controller rejects: the whole request is rejected with an error to the end user", func(t *T) {
		t.Webhook(Hook{Handle: func(rq Obj) Obj {
			if rq.Bool("object.data.bad") || rq.Str("object.data.bad") != "" {
				return Obj{"allowed": false, "status": Obj{"message": "bad data is not welcome here", "code": 403}}
			}
			return Obj{"allowed": true}
		}})
		var r *Resp
		t.Until(10*time.Second, "the webhook rejects a ConfigMap", func() bool {
			r = t.POST(t.In("configmaps"), ConfigMap(t.Name("cm"), "bad", "yes"))
			return r.Code >= 400
		})
		t.Contains("message", r.Status(403, "").Str("message"), "bad data is not welcome here")
		t.CM("good", "fine", "yes")
	})
	s.Check("ADM-12", "DefaultTolerationSeconds: durations from its parameters", func(t *T) {
		o := t.POST(t.In("pods"), Pod("a")).OK().Obj()
		t.Eq("seconds for not-ready", TolerationSeconds(o, "node.platform.io/not-ready"), []float64{42})
		t.Eq("seconds for unreachable", TolerationSeconds(o, "node.platform.io/unreachable"), []float64{43})
	}, On(Tuned))
	s.Check("ADM-13", "AlwaysAdmit (deprecated; admits all pods) and PodNodeSelector can be enabled", func(t *T) {
		t.POST(t.In("pods"), Pod("a")).OK()
	}, On(Tuned))
	s.Check("ADM-32", "AlwaysAdmit (deprecated): deprecated command-line elements warn when used", func(t *T) {
		t.Logs("deprecated", "AlwaysAdmit")
	}, On(Tuned))
	s.Check("ADM-14", "every plugin that is enabled by default can be disabled by its name", func(t *T) {
		t.Starts("--disable-admission-plugins=CertificateApproval,CertificateSigning,CertificateSubjectRestriction,DefaultIngressClass,DefaultStorageClass,DefaultTolerationSeconds,LimitRanger,MutatingAdmissionWebhook,NamespaceLifecycle,PersistentVolumeClaimResize,Priority,ResourceQuota,RuntimeClass,ServiceAccount,StorageObjectInUseProtection,TaintNodesByCondition,ValidatingAdmissionWebhook")
	}, On(Tuned))
	s.Check("ADM-15", "a plugin that does not exist cannot be enabled", func(t *T) {
		t.Refuses("--enable-admission-plugins=NoSuchPlugin")
	}, On(Tuned))
	s.Check("ADM-16", "DenyEscalatingExec: denies exec and attach on pods with host-access privileges", func(t *T) {
		for what, change := range map[string]func(Obj){
			"privileged": func(p Obj) { p.List("spec.containers")[0].Set("securityContext.privileged", true) },
			"hostipc":    func(p Obj) { p.Set("spec.hostIPC", true) },
			"hostpid":    func(p Obj) { p.Set("spec.hostPID", true) },
		} {
			pod := Pod(what)
			change(pod)
			t.POST(t.In("pods"), pod).OK()
			t.POST(t.In("pods")+"/"+what+"/exec?command=id&stdout=1", nil).Is(403)
			t.POST(t.In("pods")+"/"+what+"/attach?stdout=1", nil).Is(403)
		}
		t.POST(t.In("pods"), Pod("plain")).OK()
		t.Ne("status of exec on a plain pod", t.POST(t.In("pods")+"/plain/exec?command=id&stdout=1", nil).Code, 403)
	}, On(ExecDenied))
}
