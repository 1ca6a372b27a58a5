package checks

import (
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func paths() {
	s := Section("Path shapes")

	s.Check("PATH-01", "list and get a cluster-scoped type: <prefix>/<resource_type>[/<name>]", func(t *T) {
		t.Eq("kind", t.GET("/api/v1/nodes").Is(200).Obj().Str("kind"), "NodeList")
		t.Eq("name", t.GET(All("rbac.authorization.platform.io/v1/clusterroles")+"/cluster-admin").Is(200).Obj().Name(), "cluster-admin")
	})
	s.Check("PATH-02", "list a namespace-scoped type in one namespace", func(t *T) {
		other := t.NewNS()
		t.Lease("a")
		t.POST(In(other, Leases), LeaseOf("b", "x")).OK()
		t.SameSet("names", t.GET(t.In(Leases)).Is(200).Obj().Names(), "a")
		t.SameSet("names", t.GET(In(other, Leases)).Is(200).Obj().Names(), "b")
	})
	s.Check("PATH-03", "get a namespace-scoped resource: core and named group", func(t *T) {
		t.CM("a")
		t.Lease("b")
		t.Eq("name", t.GET("/api/v1/namespaces/"+t.NS()+"/configmaps/a").Is(200).Obj().Name(), "a")
		t.Eq("name", t.GET("/apis/coordination.platform.io/v1/namespaces/"+t.NS()+"/leases/b").Is(200).Obj().Name(), "b")
	})
	s.Check("PATH-04", "list namespaces; get a namespace", func(t *T) {
		ns := t.NS()
		o := t.GET("/api/v1/namespaces").Is(200).Obj()
		t.Eq("kind", o.Str("kind"), "NamespaceList")
		t.Includes("names", o.Names(), ns)
		t.Eq("kind", t.GET("/api/v1/namespaces/"+t.NS()).Is(200).Obj().Str("kind"), "Namespace")
	})
	s.Check("PATH-05", "cluster-scoped subresource: nodes/<name>/status", func(t *T) {
		name := t.Name("node")
		t.POST("/api/v1/nodes", YAML(`{apiVersion: v1, kind: Node, metadata: {name: %s}}`, name)).OK()
		t.Cleanup(func() { t.DELETE("/api/v1/nodes/"+name, nil) })
		t.Eq("name", t.GET("/api/v1/nodes/"+name+"/status").Is(200).Obj().Name(), name)
		o := t.PATCH(MergePatch, "/api/v1/nodes/"+name+"/status", `{status: {capacity: {cpu: "4"}}}`).OK().Obj()
		t.Eq("status.capacity", o.At("status.capacity"), Obj{"cpu": "4"})
	})
	s.Check("PATH-06", "namespace-scoped subresource: deployments/<name>/scale has a type of its own", func(t *T) {
		path := t.In("apps/v1/deployments")
		t.POST(path, Deployment("a", 2)).OK()
		o := t.GET(path + "/a/scale").Is(200).Obj()
		t.Eq("kind", o.Str("kind"), "Scale")
		t.Eq("spec.replicas", o.Num("spec.replicas"), 2)
		t.Until(10*time.Second, "the scale is updated (a controller may write in between)", func() bool {
			r := t.PUT(path+"/a/scale", t.GET(path+"/a/scale").Is(200).Obj().Set("spec.replicas", 3))
			return r.Is(200, 201, 409).Code != 409
		})
		t.Eq("spec.replicas of the Deployment", t.GET(path+"/a").Is(200).Obj().Num("spec.replicas"), 3)
	})
	s.Check("PATH-07", "permission check (virtual): POST a SubjectAccessReview", func(t *T) {
		o := t.POST(All("authorization.platform.io/v1/subjectaccessreviews"), `
apiVersion: authorization.platform.io/v1
kind: SubjectAccessReview
spec: {user: nobody, resourceAttributes: {verb: get, resource: secrets, namespace: default}}`).OK().Obj()
		t.Eq("kind", o.Str("kind"), "SubjectAccessReview")
		t.Eq("status.allowed", o.Bool("status.allowed"), false)
	})
	s.Check("PATH-08", "create: POST on the collection; replace and patch: PUT and PATCH on the resource; delete: DELETE", func(t *T) {
		o := t.Lease("a")
		path := t.In(Leases) + "/a"
		o = t.PUT(path, o.Copy().Set("spec.holderIdentity", "two")).OK().Obj()
		t.Eq("after PUT", o.Str("spec.holderIdentity"), "two")
		o = t.PATCH(MergePatch, path, `{spec: {holderIdentity: three}}`).OK().Obj()
		t.Eq("after PATCH", o.Str("spec.holderIdentity"), "three")
		t.DELETE(path, nil).OK()
		t.GET(path).Is(404)
	})
	s.Check("PATH-09", "unknown resource types, groups and versions", func(t *T) {
		t.GET("/api/v1/marbles").Is(404)
		t.GET("/apis/apps/v9/deployments").Is(404)
		t.GET("/apis/nowhere.example.com/v1/things").Is(404)
		t.GET("/api/v2/pods").Is(404)
	})
	s.Check("PATH-10", "metrics: GET /metrics", func(t *T) {
		r := t.GET("/metrics").Is(200)
		t.True(strings.Contains(string(r.Raw), "# TYPE "), "metrics in the text format")
	})
	s.Check("PATH-11", "status is a subresource: a plain update does not change it", func(t *T) {
		path := t.In("apps/v1/deployments")
		o := t.POST(path, Deployment("a", 0).Set("status.replicas", 5)).OK().Obj()
		t.Eq("status.replicas after create", o.Num("status.replicas"), 0)
	})
	s.Check("PATH-12", "subresources allow fine-grained authorization: the logs of a pod never show the pod", func(t *T) {
		t.PodReady()
		t.POST(t.In("pods"), Pod("a")).OK()
		path := t.In("pods") + "/a/log"
		t.True(len(t.GET(path).Is(204).Raw) == 0, "no body")
		t.GET(path + "?container=nowhere").Is(400)
		t.GET(t.In("pods") + "/none/log").Is(404)
	})
	s.Check("PATH-15", "connect subresources: a connection that cannot be made is an error that says why", func(t *T) {
		t.PodReady()
		t.POST(t.In("pods"), Pod("a")).OK()
		pod := t.In("pods") + "/a"
		t.Contains("message of exec", t.POST(pod+"/exec?command=ls&stdout=1", nil).Is(400).Obj().Str("message"), "does not have a host assigned")
		t.GET(pod + "/exec?command=ls&stdout=1&container=nowhere").Is(400)
		t.PUT(pod+"/portforward", nil).Is(405)
		t.GET(t.In("pods") + "/none/attach?stdout=1").Is(404)
		t.GET("/api/v1/nodes/none/proxy/").Is(404)
		t.GET(t.In("pods") + "/ftp:a:80/proxy/").Is(400)
		for _, ip := range []string{"127.0.0.1", "169.254.169.254"} {
			t.PATCH(MergePatch, pod+"/status", YAML(`{status: {phase: Running, podIP: %[1]s, podIPs: [{ip: %[1]s}]}}`, ip)).OK()
			t.GET(pod + "/proxy/").Is(400)
		}
		t.POST(t.In("services"), YAML(`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{name: web, port: 80}]}}`)).OK()
		t.POST(t.In("endpoints"), YAML(`{apiVersion: v1, kind: Endpoints, metadata: {name: s}, subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{name: web, port: 80}]}]}`)).OK()
		t.GET(t.In("services") + "/s:web/proxy/").Is(503) // the address is of no pod
		t.GET(t.In("services") + "/s:81/proxy/").Is(503)
	})
	s.Check("PATH-14", "clients inside the cluster find the API as a Service in namespace default", func(t *T) {
		apiService := map[string]string{Platform: "platform", K8s: "kubernetes"}[Vocabulary()]
		t.Until(30*time.Second, "the Service", func() bool { return t.GET(In("default", "services")+"/"+apiService).Code == 200 })
		o := t.GET(In("default", "services") + "/" + apiService).OK().Obj()
		t.Eq("port", o.Num("spec.ports.0.port"), 443)
		t.Eq("clusterIP", o.Str("spec.clusterIP"), "10.0.0.1")
		t.DELETE(In("default", "services")+"/"+apiService, nil).OK()
		t.Until(30*time.Second, "the Service again", func() bool { return t.GET(In("default", "services")+"/"+apiService).Code == 200 })
	}, On(Minimal))
	s.Check("PATH-13", "every group version that is served is registered and available, of custom types too", func(t *T) {
		const registered = "apiregistration.platform.io/v1/apiservices"
		available := func(name string) func() bool {
			return func() bool {
				r := t.GET(All(registered) + "/" + name)
				return r.Code == 200 && r.Obj().Str("status.conditions.0.type") == "Available" && r.Obj().Str("status.conditions.0.status") == "True"
			}
		}
		t.Until(30*time.Second, "v1. is registered", available("v1."))
		for _, g := range t.GET("/apis").OK().Obj().List("groups") {
			for _, v := range g.List("versions") {
				if !strings.HasSuffix(g.Str("name"), ".example.com") {
					t.Until(30*time.Second, v.Str("groupVersion")+" is registered", available(v.Str("version")+"."+g.Str("name")))
				}
			}
		}
		c := t.CRD(AnySchema)
		name := c.Version + "." + c.Group
		t.Until(30*time.Second, name+" is registered", available(name))
		t.DELETE(c.Path, nil).OK()
		t.Gone(All(registered)+"/"+name, 60*time.Second)
	})
}
