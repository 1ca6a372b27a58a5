package harness

import "time"

// The server configurations. Each is started once; Main runs most checks.

// Main has every authentication method but the token webhook, and controllers.
var Main = &Config{
	Name: "main",
	Flags: func(f *Fixtures, _ string) []string {
		return []string{
			"--token-auth-file=" + f.TokenFile,
			"--client-ca-file=" + f.CAFile,
			"--service-account-key-file=" + f.SAKeyFile,
			"--enable-bootstrap-token-auth",
			"--requestheader-client-ca-file=" + f.ProxyCAFile,
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-allowed-names=front-proxy",
			"--oidc-issuer-url=" + f.OIDC.URL,
			"--oidc-client-id=" + f.OIDC.ClientID,
			"--oidc-ca-file=" + f.OIDCCAFile,
			"--oidc-groups-claim=groups",
			"--controllers=*,tokencleaner,bootstrapsigner",
		}
	},
	Before: allowWhoAmI,
}

// Alt has the same methods with other settings: no anonymous access, claims and
// prefixes for OIDC, a token webhook with its default version and cache, two
// user name headers, other admission plugins, one group version turned off.
var Alt = &Config{
	Name: "alt",
	Flags: func(f *Fixtures, _ string) []string {
		return []string{
			"--token-auth-file=" + f.TokenFile,
			"--client-ca-file=" + f.CAFile,
			"--service-account-key-file=" + f.SAKeyFile,
			"--anonymous-auth=false",
			"--requestheader-client-ca-file=" + f.ProxyCAFile,
			"--requestheader-username-headers=X-First-User,X-Second-User",
			"--requestheader-group-headers=X-First-Group,X-Second-Group",
			"--requestheader-extra-headers-prefix=X-Ex-,X-More-",
			"--oidc-issuer-url=" + f.OIDC.URL,
			"--oidc-client-id=" + f.OIDC.ClientID,
			"--oidc-ca-file=" + f.OIDCCAFile,
			"--oidc-username-claim=email",
			"--oidc-groups-claim=roles",
			"--oidc-groups-prefix=oidc:",
			"--oidc-required-claim=tenant=blue",
			"--oidc-required-claim=level=gold",
			"--authentication-token-webhook-config-file=" + f.HookFile,
			"--enable-admission-plugins=AlwaysPullImages",
			"--disable-admission-plugins=DefaultTolerationSeconds,ServiceAccount",
			"--runtime-config=autoscaling/v1=false,events.platform.io/v1=false",
			"--cluster-signing-duration=3h",
			"--controllers=*",
		}
	},
	Before: allowWhoAmI,
}

// Hooked has a token webhook of version v1 with a short cache, and an OIDC user
// name claim with a prefix.
var Hooked = &Config{
	Name: "hooked",
	Flags: func(f *Fixtures, _ string) []string {
		return []string{
			"--token-auth-file=" + f.TokenFile,
			"--authentication-token-webhook-config-file=" + f.HookFile,
			"--authentication-token-webhook-version=v1",
			"--authentication-token-webhook-cache-ttl=4s",
			"--oidc-issuer-url=" + f.OIDC.URL,
			"--oidc-client-id=" + f.OIDC.ClientID,
			"--oidc-ca-file=" + f.OIDCCAFile,
			"--oidc-username-claim=nick",
			"--oidc-username-prefix=corp:",
			"--runtime-config=batch/v1=false,apps/v1",
		}
	},
	Before: allowWhoAmI,
}

// Minimal has static tokens only; OIDC user names have no prefix.
var Minimal = &Config{
	Name: "minimal",
	Flags: func(f *Fixtures, _ string) []string {
		return []string{
			"--token-auth-file=" + f.TokenFile,
			"--oidc-issuer-url=" + f.OIDC.URL,
			"--oidc-client-id=" + f.OIDC.ClientID,
			"--oidc-ca-file=" + f.OIDCCAFile,
			"--oidc-username-claim=nick",
			"--oidc-username-prefix=-",
			"--disable-admission-plugins=ServiceAccount,DefaultIngressClass",
		}
	},
	Before: allowWhoAmI,
}

// Tuned sets parameters of admission plugins and enables others.
var Tuned = &Config{
	Name: "tuned",
	Flags: func(f *Fixtures, _ string) []string {
		return []string{
			"--token-auth-file=" + f.TokenFile,
			"--default-not-ready-toleration-seconds=42",
			"--default-unreachable-toleration-seconds=43",
			"--enable-admission-plugins=AlwaysAdmit,PodNodeSelector",
			"--disable-admission-plugins=ServiceAccount",
		}
	},
}

// ExecDenied enables a plugin that newer releases do not have.
var ExecDenied = &Config{
	Name:         "execdenied",
	PlatformOnly: "Kubernetes removed the plugin DenyEscalatingExec by 1.21",
	Flags: func(f *Fixtures, _ string) []string {
		return []string{
			"--token-auth-file=" + f.TokenFile,
			"--enable-admission-plugins=DenyEscalatingExec",
			"--disable-admission-plugins=ServiceAccount",
		}
	},
}

// NoApply turns server-side apply off, and other features on and off.
var NoApply = &Config{
	Name:         "noapply",
	PlatformOnly: "newer releases no longer have the gate ServerSideApply",
	Flags: func(f *Fixtures, _ string) []string {
		return []string{"--token-auth-file=" + f.TokenFile, "--feature-gates=ServerSideApply=false,SuspendJob=true,TTLAfterFinished=false,EphemeralContainers=true,HPAScaleToZero=true"}
	},
}

// Deny rejects every write.
var Deny = &Config{
	Name:  "deny",
	Ready: "/livez/ping",
	Flags: func(f *Fixtures, _ string) []string {
		return []string{"--token-auth-file=" + f.TokenFile, "--enable-admission-plugins=AlwaysDeny"}
	},
}

// allowWhoAmI lets all users, including anonymous ones, read their own identity:
// a dry-run certificate request carries the attributes of its requester.
func allowWhoAmI(t *T) {
	t.POST(All("rbac.authorization.platform.io/v1/clusterroles"), `
apiVersion: rbac.authorization.platform.io/v1
kind: ClusterRole
metadata: {name: conformance-whoami}
rules: [{apiGroups: [certificates.platform.io], resources: [certificatesigningrequests], verbs: [create]}]`).OK()
	t.POST(All("rbac.authorization.platform.io/v1/clusterrolebindings"), `
apiVersion: rbac.authorization.platform.io/v1
kind: ClusterRoleBinding
metadata: {name: conformance-whoami}
roleRef: {apiGroup: rbac.authorization.platform.io, kind: ClusterRole, name: conformance-whoami}
subjects:
- {apiGroup: rbac.authorization.platform.io, kind: Group, name: "system:authenticated"}
- {apiGroup: rbac.authorization.platform.io, kind: Group, name: "system:unauthenticated"}`).OK()
}

// Restarted is a server that was stopped and started again on the same data.
var Restarted = &Config{
	Name:  "restarted",
	Flags: func(f *Fixtures, _ string) []string { return []string{"--token-auth-file=" + f.TokenFile} },
	Before: func(t *T) {
		configmaps := In("default", "configmaps")
		t.Until(20*time.Second, "namespace default exists", func() bool { return t.GET("/api/v1/namespaces/default").Code == 200 })
		t.Notes["configmap"] = map[string]any(t.POST(configmaps, ConfigMap("kept", "k", "v").Set("metadata.finalizers", []string{"example.com/x"})).OK().Obj())
		t.Notes["changed"] = map[string]any(t.POST(configmaps, ConfigMap("changed", "k", "before")).OK().Obj())
		t.POST(configmaps, ConfigMap("dropped")).OK()
		t.DELETE(configmaps+"/dropped", nil).OK()
		t.Notes["version"] = t.GET(configmaps).OK().Obj().RV()
		c := t.ForeverCRD(AnySchema)
		t.Notes["custom"] = map[string]any(t.POST(In("default", c.Resource()), c.Object("kept", "spec: {size: 1}")).OK().Obj())
		t.Notes["path"] = In("default", c.Resource()) + "/kept"
	},
	Restart: true,
}
