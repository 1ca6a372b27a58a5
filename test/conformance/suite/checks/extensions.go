package checks

import (
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

const apiServices = "apiregistration.platform.io/v1/apiservices"

// extension returns an APIService of a service in the namespace of the check.
func extension(t *T, group, service string) Obj {
	return YAML(`{apiVersion: apiregistration.platform.io/v1, kind: APIService, metadata: {name: v1.%[1]s},
		spec: {group: %[1]s, version: v1, groupPriorityMinimum: 10, versionPriority: 10, insecureSkipTLSVerify: true, service: {namespace: %[2]s, name: %[3]s}}}`, group, t.NS(), service)
}

// condition waits for the condition Available of an APIService.
func condition(t *T, name, status, reason string) {
	t.Until(60*time.Second, name+" is "+status+" "+reason, func() bool {
		o := t.GET(All(apiServices) + "/" + name).OK().Obj()
		return o.Str("status.conditions.0.type") == "Available" && o.Str("status.conditions.0.status") == status && o.Str("status.conditions.0.reason") == reason
	})
}

// extensions are checks of what Kubernetes calls aggregation.
func extensions() {
	s := Section("Groups and paths")
	s.Check("AGG-01", "the group versions that are built in are registered as local APIServices, ordered by priority", func(t *T) {
		for name, want := range map[string][2]float64{"v1.": {18000, 1}, "v1.apps": {17800, 15}, "v1." + N("events.platform.io"): {17750, 15},
			"v1." + N("rbac.authorization.platform.io"): {17000, 15}, "v1." + N("discovery.platform.io"): {16200, 15}} {
			condition(t, name, "True", "Local")
			o := t.GET(All(apiServices) + "/" + name).OK().Obj()
			t.Eq("groupPriorityMinimum of "+name, o.Num("spec.groupPriorityMinimum"), want[0])
			t.Eq("versionPriority of "+name, o.Num("spec.versionPriority"), want[1])
			t.True(!o.Has("spec.service"), "no service of %s", name)
			managed := false
			for label := range o.Map("metadata.labels") {
				managed = managed || strings.HasSuffix(label, "/automanaged")
			}
			t.True(managed, "a label */automanaged of %s", name)
		}
	})
	s.Check("AGG-02", "an extension that cannot be reached answers 503 for its group only, and says why in its condition", func(t *T) {
		group := t.Name("dead") + ".example.com"
		t.POST(All(apiServices), extension(t, group, "nobody")).OK()
		condition(t, "v1."+group, "False", "ServiceNotFound")
		t.Until(30*time.Second, "the group is listed", func() bool { return strings.Contains(string(t.GET("/apis").OK().Raw), group) })
		t.GET("/apis/" + group).Is(200)
		t.GET("/apis/" + group + "/v1").Is(503)
		t.GET("/apis/" + group + "/v1/things").Is(503)
		t.GET("/apis/" + group + "/v2/things").Is(404)
		t.GET("/apis/apps/v1").Is(200)
		t.CM("still-there")
		t.DELETE(All(apiServices)+"/v1."+group, nil).OK()
		t.Until(30*time.Second, "the group is gone", func() bool {
			return t.GET("/apis/"+group+"/v1/things").Code == 404 && t.GET("/apis/"+group).Code == 404
		})
	}, On(Minimal))
	s.Check("AGG-03", "the condition of an extension follows its service and endpoints", func(t *T) {
		group := t.Name("half") + ".example.com"
		t.POST(All(apiServices), extension(t, group, "half")).OK()
		t.Cleanup(func() { t.DELETE(All(apiServices)+"/v1."+group, nil) })
		condition(t, "v1."+group, "False", "ServiceNotFound")
		t.POST(t.In("services"), YAML(`{apiVersion: v1, kind: Service, metadata: {name: half}, spec: {ports: [{name: a, port: 80}]}}`)).OK()
		condition(t, "v1."+group, "False", "ServicePortError")
		t.PATCH(MergePatch, t.In("services")+"/half", YAML(`{spec: {ports: [{name: https, port: 443}]}}`)).OK()
		condition(t, "v1."+group, "False", "EndpointsNotFound")
		t.POST(t.In("endpoints"), YAML(`{apiVersion: v1, kind: Endpoints, metadata: {name: half}, subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{name: other, port: 80}]}]}`)).OK()
		condition(t, "v1."+group, "False", "MissingEndpoints")
		o := t.GET(All(apiServices) + "/v1." + group).OK().Obj()
		t.Contains("message", o.Str("status.conditions.0.message"), "half")
	}, On(Minimal))
	s.Check("AGG-04", "how clients are authenticated is published for extensions, with a role to read it", func(t *T) {
		const name = "extension-apiserver-authentication"
		path := In(N("platform-system"), "configmaps") + "/" + name
		t.Until(30*time.Second, "the ConfigMap", func() bool { return t.GET(path).Code == 200 })
		data := t.GET(path).OK().Obj().Map("data")
		for _, key := range []string{"client-ca-file", "requestheader-client-ca-file"} {
			text, _ := data[key].(string)
			t.Contains(key, text, "BEGIN CERTIFICATE")
		}
		for key, want := range map[string]string{"requestheader-username-headers": `"X-Remote-User"`, "requestheader-group-headers": `"X-Remote-Group"`,
			"requestheader-extra-headers-prefix": `"X-Remote-Extra-"`, "requestheader-allowed-names": `"front-proxy"`} {
			text, _ := data[key].(string)
			t.Contains(key, text, want)
		}
		t.GET(In(N("platform-system"), "rbac.authorization.platform.io/v1/roles") + "/" + name + "-reader").Is(200)
	})
	s.Check("AGG-05", "an APIService has to agree with its name, and to say one way of trust at most", func(t *T) {
		group := t.Name("bad") + ".example.com"
		for field, change := range map[string]func(o Obj) Obj{
			"metadata.name":              func(o Obj) Obj { return o.Set("spec.version", "v2") },
			"spec.insecureSkipTLSVerify": func(o Obj) Obj { return o.Set("spec.caBundle", B64("a")) },
			"spec.service.name":          func(o Obj) Obj { return o.Set("spec.service", map[string]any{"namespace": "default"}) },
			"spec.service.port":          func(o Obj) Obj { return o.Set("spec.service.port", 70000) },
			"spec.versionPriority":       func(o Obj) Obj { return o.Set("spec.versionPriority", 1001) },
			"spec.groupPriorityMinimum":  func(o Obj) Obj { return o.Set("spec.groupPriorityMinimum", 0) },
		} {
			refused := t.POST(All(apiServices), change(extension(t, group, "s"))).Status(422, "Invalid")
			t.Contains("message", refused.Str("message"), field)
		}
	})
	s.Check("AGG-06", "requests for extensions are authorized before they are handed on", func(t *T) {
		group, user := t.Name("closed")+".example.com", t.Name("user")
		t.POST(All(apiServices), extension(t, group, "nobody")).OK()
		t.Cleanup(func() { t.DELETE(All(apiServices)+"/v1."+group, nil) })
		t.Until(30*time.Second, "it is known", func() bool { return t.GET("/apis/"+group+"/v1/things").Code == 503 })
		path := "/apis/" + group + "/v1/namespaces/" + t.NS() + "/things"
		t.GET(path, Impersonate(user)).Is(403)
		t.POST(path, YAML(`{kind: Thing}`), Impersonate(user)).Is(403)
		t.GET("/apis/"+group+"/v1/namespaces//things", Impersonate(user, "system:authenticated")).Is(403, 404)
		t.GrantIn(t.NS(), user, `[{apiGroups: [`+group+`], resources: [things], verbs: [list]}]`)
		t.Until(30*time.Second, "the permission counts", func() bool { return t.GET(path, Impersonate(user)).Code == 503 })
		t.GET(path+"/a", Impersonate(user)).Is(403)
	}, On(Minimal))
	s.Check("AGG-07", "a group version that is built in is not handed on, and its APIService returns", func(t *T) {
		name := "v1beta1." + N("storage.platform.io")
		condition(t, name, "True", "Local")
		t.PATCH(MergePatch, All(apiServices)+"/"+name, YAML(`{spec: {service: {namespace: default, name: nobody}}}`)).OK()
		t.GET(All("storage.platform.io/v1beta1/csidrivers")).Is(200)
		t.Until(60*time.Second, "it is local again", func() bool {
			o := t.GET(All(apiServices) + "/" + name).OK().Obj()
			return !o.Has("spec.service") && o.Str("status.conditions.0.reason") == "Local"
		})
		t.DELETE(All(apiServices)+"/"+name, nil).OK()
		t.Until(60*time.Second, "it returns", func() bool { return t.GET(All(apiServices)+"/"+name).Code == 200 })
		t.GET(All("storage.platform.io/v1beta1/csidrivers")).Is(200)
	}, PlatformOnly("a Kubernetes API server hands on what an APIService says, until it is restarted"))
}
