package podsecurity

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validate returns what the policy does not allow in the pod.
func (c *check) validate() (wrong field.ErrorList) {
	s, pod := &c.policy.Spec, c.pod
	at := field.NewPath("spec", "securityContext")
	own := pod.Spec.SecurityContext
	if own == nil {
		own = &corev1.PodSecurityContext{}
	}
	var fsGroups []int64
	if own.FSGroup != nil {
		fsGroups = []int64{*own.FSGroup}
	}
	wrong = append(wrong, s.FSGroup.groups(at.Child("fsGroup"), fsGroups)...)
	wrong = append(wrong, s.SupplementalGroups.groups(at.Child("supplementalGroups"), own.SupplementalGroups)...)
	wrong = append(wrong, c.seccomp(c.seccompOfPod(), c.podSeccomp())...)
	wrong = append(wrong, s.SELinux.options(at.Child("seLinuxOptions"), own.SELinuxOptions)...)
	for _, host := range []struct {
		field, title  string
		allowed, used bool
	}{
		{"hostNetwork", "Host network", s.HostNetwork, pod.Spec.HostNetwork}, {"hostPID", "Host PID", s.HostPID, pod.Spec.HostPID},
		{"hostIPC", "Host IPC", s.HostIPC, pod.Spec.HostIPC},
	} {
		if host.used && !host.allowed {
			wrong = append(wrong, field.Invalid(at.Child(host.field), true, host.title+" is not allowed to be used"))
		}
	}
	wrong = append(wrong, s.sysctls(own.Sysctls)...)
	wrong = append(wrong, c.volumes()...)
	if class := pod.Spec.RuntimeClassName; s.RuntimeClass != nil && class != nil {
		if allowed := s.RuntimeClass.AllowedRuntimeClassNames; !slices.Contains(allowed, "*") && !slices.Contains(allowed, *class) {
			wrong = append(wrong, field.Invalid(field.NewPath("spec", "runtimeClassName"), *class, ""))
		}
	}
	for _, container := range containers(pod) {
		wrong = append(wrong, c.container(container)...)
	}
	return wrong
}

// sysctls checks the kernel parameters of a pod. Those that concern nothing but the pod
// are allowed unless they are forbidden.
func (s *spec) sysctls(given []corev1.Sysctl) (wrong field.ErrorList) {
	safe := []string{"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range"}
	at := field.NewPath("pod", "spec", "securityContext").Child("sysctls")
	for i, sysctl := range given {
		switch {
		case matches(s.ForbiddenSysctls, sysctl.Name):
			wrong = append(wrong, field.Forbidden(at.Index(i), fmt.Sprintf("sysctl %q is not allowed", sysctl.Name)))
		case !slices.Contains(safe, sysctl.Name) && !matches(s.AllowedUnsafeSysctls, sysctl.Name):
			wrong = append(wrong, field.Forbidden(at.Index(i), fmt.Sprintf("unsafe sysctl %q is not allowed", sysctl.Name)))
		}
	}
	return wrong
}

// matches reports whether a name is one of some, which may end in a star.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, star := strings.CutSuffix(pattern, "*")
		return name == pattern || star && strings.HasPrefix(name, prefix)
	})
}

func (c *check) container(container *container) (wrong field.ErrorList) {
	s, own := &c.policy.Spec, container.context()
	path := field.NewPath("spec", container.list).Index(container.index)
	at := path.Child("securityContext")
	wrong = append(wrong, s.user(at, c.nonRoot(own), c.user(own))...)
	var groups []int64
	if group := c.group(own); group != nil {
		groups = []int64{*group}
	}
	wrong = append(wrong, s.group().groups(at, groups)...)
	wrong = append(wrong, s.SELinux.options(at.Child("seLinuxOptions"), c.options(own))...)
	wrong = append(wrong, c.appArmor(container.name)...)
	wrong = append(wrong, c.seccomp(c.vocabulary.Qualified("container.seccomp.security.alpha", container.name), c.containerSeccomp(container))...)
	if own.Privileged != nil && *own.Privileged && !s.Privileged {
		wrong = append(wrong, field.Invalid(at.Child("privileged"), true, "Privileged containers are not allowed"))
	}
	mount, allowed := corev1.DefaultProcMount, s.AllowedProcMountTypes
	if own.ProcMount != nil {
		mount = *own.ProcMount
	}
	if len(allowed) == 0 {
		allowed = []corev1.ProcMountType{corev1.DefaultProcMount}
	}
	if !slices.Contains(allowed, mount) {
		wrong = append(wrong, field.Invalid(at.Child("procMount"), mount, "ProcMountType is not allowed"))
	}
	wrong = append(wrong, s.checkCapabilities(at.Child("capabilities"), own.Capabilities)...)
	for _, port := range container.ports {
		if port.HostPort > 0 && !slices.ContainsFunc(s.HostPorts, func(r portRange) bool { return r.Min <= port.HostPort && port.HostPort <= r.Max }) {
			wrong = append(wrong, field.Invalid(path.Child("hostPort"), port.HostPort,
				fmt.Sprintf("Host port %d is not allowed to be used. Allowed ports: [%s]", port.HostPort, joined(s.HostPorts))))
		}
	}
	switch readOnly := own.ReadOnlyRootFilesystem; {
	case !s.ReadOnlyRootFilesystem:
	case readOnly == nil:
		wrong = append(wrong, field.Invalid(at.Child("readOnlyRootFilesystem"), readOnly, "ReadOnlyRootFilesystem may not be nil and must be set to true"))
	case !*readOnly:
		wrong = append(wrong, field.Invalid(at.Child("readOnlyRootFilesystem"), false, "ReadOnlyRootFilesystem must be set to true"))
	}
	if escalates := own.AllowPrivilegeEscalation; !s.escalates() && (escalates == nil || *escalates) {
		wrong = append(wrong, field.Invalid(at.Child("allowPrivilegeEscalation"), escalates, "Allowing privilege escalation for containers is not allowed"))
	}
	return wrong
}

func joined(ranges []portRange) string {
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}

// user checks whom a container runs as.
func (s *spec) user(at *field.Path, nonRoot *bool, id *int64) field.ErrorList {
	switch rule := s.RunAsUser; {
	case rule.Rule == runAsAny:
	case rule.Rule == mustRunAs && id == nil:
		return field.ErrorList{field.Required(at.Child("runAsUser"), "")}
	case rule.Rule == mustRunAs && !rule.allows(*id):
		return field.ErrorList{field.Invalid(at.Child("runAsUser"), *id, fmt.Sprintf("must be in the ranges: %v", rule.Ranges))}
	case rule.Rule == mustRunAs:
	case nonRoot == nil && id == nil:
		return field.ErrorList{field.Required(at.Child("runAsNonRoot"), "must be true")}
	case nonRoot != nil && !*nonRoot:
		return field.ErrorList{field.Invalid(at.Child("runAsNonRoot"), false, "must be true")}
	case id != nil && *id == 0:
		return field.ErrorList{field.Invalid(at.Child("runAsUser"), *id, "running with the root UID is forbidden")}
	}
	return nil
}

func (s *spec) checkCapabilities(at *field.Path, given *corev1.Capabilities) (wrong field.ErrorList) {
	if given == nil {
		if len(s.DefaultAddCapabilities) == 0 && len(s.RequiredDropCapabilities) == 0 {
			return nil
		}
		return field.ErrorList{field.Invalid(at, given, "required capabilities are not set on the securityContext")}
	}
	if slices.Contains(s.AllowedCapabilities, "*") {
		return nil
	}
	for _, capability := range given.Add {
		if !slices.Contains(s.DefaultAddCapabilities, capability) && !slices.Contains(s.AllowedCapabilities, capability) {
			wrong = append(wrong, field.Invalid(at.Child("add"), string(capability), "capability may not be added"))
		}
	}
	for _, capability := range s.RequiredDropCapabilities {
		if !slices.Contains(given.Drop, capability) {
			wrong = append(wrong, field.Invalid(at.Child("drop"), given.Drop, fmt.Sprintf("%s is required to be dropped but was not found", capability)))
		}
	}
	return wrong
}
