package admission_test

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// open is a policy that allows everything, but for what a test says in its place.
const open = `runAsUser: {rule: RunAsAny}, seLinux: {rule: RunAsAny}, supplementalGroups: {rule: RunAsAny}, fsGroup: {rule: RunAsAny}`

func putPolicy(t *testing.T, c *fake.Cluster, name, spec string, annotations ...string) {
	t.Helper()
	c.Put(t, resource.GroupResource{Group: "policy", Resource: "podsecuritypolicies"},
		`{metadata: {name: `+name+`, annotations: {`+strings.Join(annotations, ", ")+`}}, spec: {`+spec+`}}`)
}

// by is the creation of a pod by a user.
func by(user, spec string) services.AdmissionRequest {
	r := createOf("", "pods", `{"metadata":{"name":"c"},"spec":`+spec+`}`)
	r.User.Name = user
	return r
}

func TestPodSecurityPolicySelection(t *testing.T) {
	start := func(t *testing.T) services.Admission {
		c := cluster(t)
		putPolicy(t, c, "a-broken", `runAsUser: {rule: Whoever}`)
		putPolicy(t, c, "b-fills", strings.Replace(open, "fsGroup: {rule: RunAsAny}", "fsGroup: {rule: MustRunAs, ranges: [{min: 7, max: 9}]}", 1))
		putPolicy(t, c, "c-open", open)
		putPolicy(t, c, "d-fills", strings.Replace(open, "fsGroup: {rule: RunAsAny}", "fsGroup: {rule: MustRunAs, ranges: [{min: 5, max: 6}]}", 1))
		return started(t, c, alone("PodSecurityPolicy")...)
	}
	kittest.LocalAndRemote(t, contract.Admission, start, func(t *testing.T, start func(*testing.T) services.Admission) {
		a := start(t)
		for name, x := range map[string]struct{ user, spec, policy, want, refused string }{
			"one that fills in":             {"uses-b-fills", `{}`, "b-fills", `"spec":{"securityContext":{"fsGroup":7}}`, ""},
			"one that fits as it is":        {"uses-b-fills", `{"securityContext":{"fsGroup":8}}`, "b-fills", `"spec":{"securityContext":{"fsGroup":8}}`, ""},
			"the one without changes first": {"older", `{}`, "c-open", `"spec":{}`, ""},
			"by the account":                {"jane", `{"serviceAccountName":"runner"}`, "b-fills", `"fsGroup":7`, ""},
			"by another account":            {"jane", `{"serviceAccountName":"other"}`, "", "", "PodSecurityPolicy: unable to admit pod: []"},
			"only the reasons of what is usable": {"uses-d-fills", `{"securityContext":{"fsGroup":8}}`, "", "",
				"PodSecurityPolicy: unable to admit pod: [spec.securityContext.fsGroup: Invalid value: [8]: group 8 must be in the ranges: [{5 6}]]"},
			"a broken one allows nothing": {"uses-a-broken", `{}`, "", "", "unable to admit pod: []"},
		} {
			r := by(x.user, x.spec)
			got, err := a.Mutate(t.Context(), r)
			if x.refused != "" {
				if !services.IsReason(err, services.ReasonForbidden) || !strings.HasSuffix(strings.ReplaceAll(err.Error(), "[]int64{8}", "[8]"), x.refused) {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if err != nil || !strings.Contains(string(got.Object), x.want) || !strings.Contains(string(got.Object), `"platform.io/psp":"`+x.policy+`"`) ||
				got.AuditAnnotations["podsecuritypolicy.policy.platform.io/admit-policy"] != x.policy {
				t.Errorf("%s: %s %v, %v", name, got.Object, got.AuditAnnotations, err)
			}
			if r.Object = got.Object; err == nil {
				got, err := a.Validate(t.Context(), r)
				if err != nil || got.AuditAnnotations["podsecuritypolicy.policy.platform.io/validate-policy"] != x.policy {
					t.Errorf("%s, at the end: %v, %v", name, got.AuditAnnotations, err)
				}
			}
		}
		// At the end nothing is filled in, and the annotation is only where to begin.
		late := by("uses-b-fills", `{}`)
		late.Object = []byte(`{"metadata":{"annotations":{"platform.io/psp":"b-fills"}},"spec":{}}`)
		if _, err := a.Validate(t.Context(), late); !services.IsReason(err, services.ReasonForbidden) || !strings.Contains(err.Error(), "unable to validate pod") {
			t.Errorf("filled in at the end: %v", err)
		}
		update := func(now string) services.AdmissionRequest {
			r := updateOf("pods", `{"metadata":{"name":"c"},"spec":{}}`, now)
			r.User.Name = "nobody"
			return r
		}
		if _, err := a.Validate(t.Context(), update(`{"metadata":{"name":"c","finalizers":["a/b"]},"spec":{}}`)); err != nil {
			t.Errorf("what the garbage collector writes: %v", err)
		}
		if _, err := a.Validate(t.Context(), update(`{"metadata":{"name":"c","labels":{"a":"b"}},"spec":{}}`)); !services.IsReason(err, services.ReasonForbidden) {
			t.Errorf("a label by nobody: %v", err)
		}
	})
	if _, err := started(t, cluster(t), alone("PodSecurityPolicy")...).Mutate(t.Context(), by("older", `{}`)); !services.IsReason(err, services.ReasonForbidden) ||
		!strings.Contains(err.Error(), "PodSecurityPolicy: no providers available to validate pod request") {
		t.Errorf("without policies: %v", err)
	}
}

// with replaces a rule of the open policy.
func with(name, rule string) string {
	return strings.Replace(open, name+": {rule: RunAsAny}", name+": "+rule, 1)
}

// TestPodSecurityPolicyRules: what each rule fills in and refuses.
func TestPodSecurityPolicyRules(t *testing.T) {
	const user = `{rule: MustRunAs, ranges: [{min: 5, max: 9}]}`
	volume := func(v string) string {
		return `{"volumes":[{"name":"v",` + v + `}],"containers":[{"name":"a","volumeMounts":[{"name":"v","mountPath":"/v"}]}]}`
	}
	secured := func(context string) string { return `{"containers":[{"name":"a","securityContext":` + context + `}]}` }
	for _, x := range []struct {
		policy, spec, want, refused string
		annotations                 []string
	}{
		{policy: with("runAsUser", user), spec: secured(`{}`), want: `"securityContext":{"runAsUser":5}`},
		{policy: with("runAsUser", user), spec: `{"securityContext":{"runAsUser":6},"containers":[{"name":"a"}]}`, want: `"containers":[{"name":"a"}]`},
		{policy: with("runAsUser", user), spec: secured(`{"runAsUser":0}`), refused: "spec.containers[0].securityContext.runAsUser: Invalid value: 0: must be in the ranges: [{5 9}]"},
		{policy: with("runAsUser", "{rule: MustRunAsNonRoot}"), spec: secured(`{}`), want: `"runAsNonRoot":true`},
		{policy: with("runAsUser", "{rule: MustRunAsNonRoot}"), spec: secured(`{"runAsUser":0}`), refused: "running with the root UID is forbidden"},
		{policy: with("runAsUser", "{rule: MustRunAsNonRoot}"), spec: secured(`{"runAsNonRoot":false,"runAsUser":5}`), refused: "must be true"},
		{policy: open + `, runAsGroup: ` + user, spec: secured(`{}`), want: `"runAsGroup":5`},
		{policy: open + `, runAsGroup: ` + user, spec: secured(`{"runAsGroup":1}`), refused: "group 1 must be in the ranges"},
		{policy: with("supplementalGroups", user), spec: `{}`, want: `"supplementalGroups":[5]`},
		{policy: with("supplementalGroups", `{rule: MayRunAs, ranges: [{min: 5, max: 9}]}`), spec: `{}`, want: `"spec":{}`},
		{policy: with("supplementalGroups", `{rule: MayRunAs, ranges: [{min: 5, max: 9}]}`), spec: `{"securityContext":{"supplementalGroups":[5,1]}}`, refused: "group 1 must be in the ranges"},
		{policy: with("seLinux", `{rule: MustRunAs, seLinuxOptions: {level: "s0:c1,c2"}}`), spec: `{}`, want: `"seLinuxOptions":{"level":"s0:c1,c2"}`},
		{policy: with("seLinux", `{rule: MustRunAs, seLinuxOptions: {level: "s0:c1,c2"}}`), spec: `{"securityContext":{"seLinuxOptions":{"level":"s0:c2,c1"}}}`, want: `"level":"s0:c2,c1"`},
		{policy: with("seLinux", `{rule: MustRunAs, seLinuxOptions: {user: u}}`), spec: `{"securityContext":{"seLinuxOptions":{"user":"v"}}}`, refused: `seLinuxOptions.user: Invalid value: "v": must be u`},
		{policy: open, spec: `{"hostNetwork":true}`, refused: "Host network is not allowed to be used"},
		{policy: open, spec: `{"hostPID":true}`, refused: "Host PID is not allowed to be used"},
		{policy: open, spec: `{"hostIPC":true}`, refused: "Host IPC is not allowed to be used"},
		{policy: open + `, hostPID: true`, spec: `{"hostPID":true}`, want: `"hostPID":true`},
		{policy: open, spec: secured(`{"privileged":true}`), refused: "Privileged containers are not allowed"},
		{policy: open, spec: `{"initContainers":[{"name":"i","securityContext":{"privileged":true}}]}`, refused: "spec.initContainers[0].securityContext.privileged"},
		{policy: open, spec: `{"ephemeralContainers":[{"name":"e","securityContext":{"privileged":true}}]}`, refused: "spec.ephemeralContainers[0].securityContext.privileged"},
		{policy: open, spec: secured(`{"procMount":"Unmasked"}`), refused: "ProcMountType is not allowed"},
		{policy: open + `, readOnlyRootFilesystem: true`, spec: secured(`{}`), want: `"readOnlyRootFilesystem":true`},
		{policy: open + `, readOnlyRootFilesystem: true`, spec: secured(`{"readOnlyRootFilesystem":false}`), refused: "ReadOnlyRootFilesystem must be set to true"},
		{policy: open + `, allowPrivilegeEscalation: false`, spec: secured(`{}`), want: `"allowPrivilegeEscalation":false`},
		{policy: open + `, allowPrivilegeEscalation: false`, spec: secured(`{"allowPrivilegeEscalation":true}`), refused: "Allowing privilege escalation for containers is not allowed"},
		{policy: open + `, defaultAllowPrivilegeEscalation: true`, spec: secured(`{}`), want: `"allowPrivilegeEscalation":true`},
		{policy: open + `, requiredDropCapabilities: [ALL], defaultAddCapabilities: [B, A]`, spec: secured(`{"capabilities":{"drop":["B"]}}`), want: `"capabilities":{"add":["A"],"drop":["ALL","B"]}`},
		{policy: open, spec: secured(`{"capabilities":{"add":["SYS_ADMIN"]}}`), refused: "capability may not be added"},
		{policy: open + `, allowedCapabilities: ["*"]`, spec: secured(`{"capabilities":{"add":["SYS_ADMIN"]}}`), want: "SYS_ADMIN"},
		{policy: open + `, hostPorts: [{min: 80, max: 80}, {min: 90, max: 99}]`, spec: `{"containers":[{"name":"a","ports":[{"hostPort":81}]}]}`, refused: "Host port 81 is not allowed to be used. Allowed ports: [80,90-99]"},
		{policy: open + `, hostPorts: [{min: 80, max: 80}]`, spec: `{"containers":[{"name":"a","ports":[{"hostPort":80}]}]}`, want: `"hostPort":80`},
		{policy: open, spec: volume(`"emptyDir":{}`), refused: "emptyDir volumes are not allowed to be used"},
		{policy: open + `, volumes: [emptyDir]`, spec: volume(`"emptyDir":{}`), want: "emptyDir"},
		{policy: open + `, volumes: [cephFS]`, spec: volume(`"cephfs":{}`), want: "cephfs"},
		{policy: open + `, volumes: ["*"]`, spec: volume(`"emptyDir":{},"hostPath":{"path":"/"}`), refused: "unknown volume type"},
		{policy: open + `, volumes: [hostPath], allowedHostPaths: [{pathPrefix: /a}]`, spec: volume(`"hostPath":{"path":"/ab"}`), refused: "hostPath.pathPrefix"},
		{policy: open + `, volumes: [hostPath], allowedHostPaths: [{pathPrefix: /a, readOnly: true}]`, spec: volume(`"hostPath":{"path":"/a/b"}`), refused: "spec.containers[0].volumeMounts[0].readOnly: Invalid value: false: must be read-only"},
		{policy: open + `, volumes: [hostPath], allowedHostPaths: [{pathPrefix: /a/}]`, spec: volume(`"hostPath":{"path":"/a"}`), want: "hostPath"},
		{policy: open + `, volumes: [csi], allowedCSIDrivers: [{name: x}]`, spec: volume(`"csi":{"driver":"y"}`), refused: "Inline CSI driver is not allowed to be used"},
		{policy: open + `, volumes: [flexVolume], allowedFlexVolumes: [{driver: x}]`, spec: volume(`"flexVolume":{"driver":"y"}`), refused: "Flexvolume driver is not allowed to be used"},
		{policy: open + `, volumes: [secret]`, spec: volume(`"projected":{"sources":[{"serviceAccountToken":{"path":"token"}},{"configMap":{"name":"platform-root-ca.crt"}}]}`), want: "projected"},
		{policy: open + `, volumes: [secret]`, spec: volume(`"projected":{"sources":[{"serviceAccountToken":{"path":"token"},"secret":{"name":"x"}}]}`), refused: "projected volumes are not allowed"},
		{policy: open, spec: `{"securityContext":{"sysctls":[{"name":"kernel.shm_rmid_forced","value":"1"}]}}`, want: "sysctls"},
		{policy: open, spec: `{"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]}}`, refused: `unsafe sysctl "kernel.msgmax" is not allowed`},
		{policy: open + `, allowedUnsafeSysctls: ["kernel.msg*"]`, spec: `{"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]}}`, want: "sysctls"},
		{policy: open + `, forbiddenSysctls: ["kernel.*"]`, spec: `{"securityContext":{"sysctls":[{"name":"kernel.shm_rmid_forced","value":"1"}]}}`, refused: `sysctl "kernel.shm_rmid_forced" is not allowed`},
		{policy: open + `, runtimeClass: {allowedRuntimeClassNames: [a], defaultRuntimeClassName: a}`, spec: `{}`, want: `"runtimeClassName":"a"`},
		{policy: open + `, runtimeClass: {allowedRuntimeClassNames: [a]}`, spec: `{"runtimeClassName":"b"}`, refused: "spec.runtimeClassName"},
		{policy: open, spec: `{"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}}`, refused: "seccomp may not be set"},
		{policy: open, spec: secured(`{"seccompProfile":{"type":"Unconfined"}}`), refused: "seccomp may not be set"},
		{policy: open, spec: `{}`, want: `"seccomp.security.alpha.platform.io/pod":"runtime/default"`,
			annotations: []string{`seccomp.security.alpha.platform.io/defaultProfileName: runtime/default`, `seccomp.security.alpha.platform.io/allowedProfileNames: docker/default`}},
		{policy: open, spec: secured(`{"seccompProfile":{"type":"Localhost","localhostProfile":"x"}}`), refused: "localhost/x is not an allowed seccomp profile. Valid values are runtime/default",
			annotations: []string{`seccomp.security.alpha.platform.io/allowedProfileNames: runtime/default`}},
		{policy: open, spec: secured(`{}`), want: `"container.apparmor.security.beta.platform.io/a":"runtime/default"`,
			annotations: []string{`apparmor.security.beta.platform.io/defaultProfileName: runtime/default`}},
		{policy: open, spec: secured(`{}`), refused: "AppArmor profile must be set", annotations: []string{`apparmor.security.beta.platform.io/allowedProfileNames: runtime/default`}},
	} {
		c := cluster(t)
		putPolicy(t, c, "p", x.policy, x.annotations...)
		a := started(t, c, alone("PodSecurityPolicy")...)
		got := mutated(t, a, by("uses-p", x.spec), x.refused)
		if x.refused == "" && !strings.Contains(got, x.want) {
			t.Errorf("%s of %s:\n%s, want %s", x.spec, x.policy, got, x.want)
		}
	}
}

// TestManyWrongGroupsAreBounded refuses a pod with many groups in a short text, under several policies.
func TestManyWrongGroupsAreBounded(t *testing.T) {
	c := cluster(t)
	for _, name := range []string{"a", "b", "c"} {
		putPolicy(t, c, name, with("supplementalGroups", `{rule: MustRunAs, ranges: [{min: 5, max: 9}]}`))
	}
	a := started(t, c, alone("PodSecurityPolicy")...)
	groups := strings.Repeat("1,", 20_000) + "1"
	_, err := a.Mutate(t.Context(), by("older", `{"securityContext":{"supplementalGroups":[`+groups+`]}}`))
	if err == nil || !strings.Contains(err.Error(), "group 1 must be in the ranges") || !strings.HasSuffix(err.Error(), "and more") {
		t.Fatalf("%.500v", err)
	}
	if size := len(err.Error()); size > 64<<10 {
		t.Errorf("an error of %d bytes", size)
	}
}
