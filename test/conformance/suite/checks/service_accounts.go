package checks

import (
	"encoding/base64"
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func serviceAccounts() {
	s := Section("Service account tokens")

	s.Check("SA-01", "secret of type platform.io/service-account-token: keys ca.crt, namespace, token", func(t *T) {
		_, path := t.ServiceAccountToken("robot")
		t.Until(10*time.Second, "the keys ca.crt and namespace", func() bool {
			o := t.GET(path).OK().Obj().Map("data")
			return o["ca.crt"] != nil && o["namespace"] != nil
		})
		data := t.GET(path).OK().Obj().Map("data")
		t.Eq("namespace", FromB64(data["namespace"].(string)), t.NS())
		t.Contains("ca.crt", FromB64(data["ca.crt"].(string)), "-----BEGIN CERTIFICATE-----")
		t.Eq("parts of the token, a signed JWT", len(strings.Split(FromB64(data["token"].(string)), ".")), 3)
	})
	s.Check("SA-02", "username system:serviceaccount:<namespace>:<service_account> and its groups", func(t *T) {
		token, _ := t.ServiceAccountToken("robot")
		who := t.Accepted(token)
		t.Eq("username", who.Str("username"), "system:serviceaccount:"+t.NS()+":robot")
		t.SameSet("groups", who.Strs("groups"), "system:serviceaccounts", "system:serviceaccounts:"+t.NS(), "system:authenticated")
	})
	s.Check("SA-03", "--service-account-lookup: tokens deleted from the API are revoked", func(t *T) {
		token, path := t.ServiceAccountToken("robot")
		t.Accepted(token)
		t.DELETE(path, nil).OK()
		t.Rejected(token)
	})
	s.Check("SA-04", "service accounts are namespace-bound users with permissions by their name", func(t *T) {
		token, _ := t.ServiceAccountToken("robot")
		robot := Identity{Token: token}
		t.Accepted(token)
		t.GET(t.In("configmaps"), As(robot)).Is(403)
		t.POST(t.In("rbac.authorization.platform.io/v1/roles"), `
apiVersion: rbac.authorization.platform.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]`).OK()
		t.POST(t.In("rbac.authorization.platform.io/v1/rolebindings"), YAML(`
apiVersion: rbac.authorization.platform.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.platform.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: robot, namespace: %s}]`, t.NS())).OK()
		t.Allowed(func() *Resp { return t.GET(t.In("configmaps"), As(robot)) }).Is(200)
		t.GET(In("default", "configmaps"), As(robot)).Is(403)
	})
	s.Check("SA-05", "serviceAccountName of a pod is normally set automatically", func(t *T) {
		t.PodReady()
		o := t.POST(t.In("pods"), Pod("a")).OK().Obj()
		t.Eq("spec.serviceAccountName", o.Str("spec.serviceAccountName"), "default")
	})
	s.Check("SA-06", "every namespace gets a service account named default", func(t *T) {
		t.Until(20*time.Second, "serviceaccount default", func() bool { return t.GET(t.In("serviceaccounts")+"/default").Code == 200 })
	})
	s.Check("SA-07", "--service-account-key-file absent: the server's TLS private key signs, tokens work", func(t *T) {
		token, _ := t.ServiceAccountToken("robot")
		t.Eq("username", t.Accepted(token).Str("username"), "system:serviceaccount:"+t.NS()+":robot")
	}, On(Minimal), PlatformOnly("kube-apiserver needs the flag"))
	s.Check("SA-08", "a token that is asked for: its audience is a list", func(t *T) {
		t.Until(20*time.Second, "serviceaccount default", func() bool { return t.GET(t.In("serviceaccounts")+"/default").Code == 200 })
		o := t.POST(t.In("serviceaccounts")+"/default/token", `{apiVersion: authentication.platform.io/v1, kind: TokenRequest, spec: {audiences: [one]}}`).OK().Obj()
		parts := strings.Split(o.Str("status.token"), ".")
		t.Eq("parts of the token, a signed JWT", len(parts), 3)
		claims, err := base64.RawURLEncoding.DecodeString(parts[1])
		t.True(err == nil, "base64, got %v", err)
		t.Eq("aud", YAML("%s", string(claims)).At("aud"), []any{"one"})
	})
}
