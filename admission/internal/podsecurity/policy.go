package podsecurity

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules of identities.
const (
	mustRunAs        = "MustRunAs"
	mustRunAsNonRoot = "MustRunAsNonRoot"
	mayRunAs         = "MayRunAs"
	runAsAny         = "RunAsAny"
)

// Policy is the part of a stored PodSecurityPolicy that admission reads. The versions of k8s.io/api that are
// kept no longer have it.
type Policy struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec spec `json:"spec"`

	broken error // why it cannot be applied
}

type spec struct {
	Privileged                      bool                   `json:"privileged"`
	DefaultAddCapabilities          []corev1.Capability    `json:"defaultAddCapabilities"`
	RequiredDropCapabilities        []corev1.Capability    `json:"requiredDropCapabilities"`
	AllowedCapabilities             []corev1.Capability    `json:"allowedCapabilities"`
	Volumes                         []string               `json:"volumes"`
	HostNetwork                     bool                   `json:"hostNetwork"`
	HostPorts                       []portRange            `json:"hostPorts"`
	HostPID                         bool                   `json:"hostPID"`
	HostIPC                         bool                   `json:"hostIPC"`
	SELinux                         seLinux                `json:"seLinux"`
	RunAsUser                       rule                   `json:"runAsUser"`
	RunAsGroup                      *rule                  `json:"runAsGroup"`
	SupplementalGroups              rule                   `json:"supplementalGroups"`
	FSGroup                         rule                   `json:"fsGroup"`
	ReadOnlyRootFilesystem          bool                   `json:"readOnlyRootFilesystem"`
	DefaultAllowPrivilegeEscalation *bool                  `json:"defaultAllowPrivilegeEscalation"`
	AllowPrivilegeEscalation        *bool                  `json:"allowPrivilegeEscalation"`
	AllowedHostPaths                []hostPath             `json:"allowedHostPaths"`
	AllowedFlexVolumes              []driver               `json:"allowedFlexVolumes"`
	AllowedCSIDrivers               []driver               `json:"allowedCSIDrivers"`
	AllowedUnsafeSysctls            []string               `json:"allowedUnsafeSysctls"`
	ForbiddenSysctls                []string               `json:"forbiddenSysctls"`
	AllowedProcMountTypes           []corev1.ProcMountType `json:"allowedProcMountTypes"`
	RuntimeClass                    *struct {
		AllowedRuntimeClassNames []string `json:"allowedRuntimeClassNames"`
		DefaultRuntimeClassName  *string  `json:"defaultRuntimeClassName"`
	} `json:"runtimeClass"`
}

type seLinux struct {
	Rule           string                 `json:"rule"`
	SELinuxOptions *corev1.SELinuxOptions `json:"seLinuxOptions"`
}

// rule is about the ids of users or groups.
type rule struct {
	Rule   string    `json:"rule"`
	Ranges []idRange `json:"ranges"`
}

type idRange struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

type portRange struct {
	Min int32 `json:"min"`
	Max int32 `json:"max"`
}

// String is "80" or "80-90".
func (r portRange) String() string {
	if r.Min == r.Max {
		return fmt.Sprint(r.Min)
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}

type hostPath struct {
	PathPrefix string `json:"pathPrefix"`
	ReadOnly   bool   `json:"readOnly"`
}

// driver is one of FlexVolumes or of CSI.
type driver struct {
	Driver string `json:"driver"`
	Name   string `json:"name"`
}

// group is the rule about the group of containers.
func (s *spec) group() rule {
	if s.RunAsGroup == nil {
		return rule{Rule: runAsAny}
	}
	return *s.RunAsGroup
}

// escalates reports whether containers may gain privileges, which is the default.
func (s *spec) escalates() bool {
	return s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation
}

// first returns the id that is filled in; nil when none is.
func (r rule) first() *int64 {
	if r.Rule != mustRunAs {
		return nil
	}
	id := r.Ranges[0].Min
	return &id
}

func (r rule) allows(id int64) bool {
	return slices.ContainsFunc(r.Ranges, func(x idRange) bool { return x.Min <= id && id <= x.Max })
}

// maxWrong bounds what one error lists: a pod can name a hundred thousand groups.
const maxWrong = 100

// groups checks group ids. It stops when it has found enough.
func (r rule) groups(at *field.Path, ids []int64) (wrong field.ErrorList) {
	if r.Rule == runAsAny {
		return nil
	}
	if r.Rule == mustRunAs && len(ids) == 0 {
		return field.ErrorList{field.Invalid(at, ids, "unable to validate empty groups against required ranges")}
	}
	for _, id := range ids {
		if !r.allows(id) {
			wrong = append(wrong, field.Invalid(at, []int64{id}, fmt.Sprintf("group %d must be in the ranges: %v", id, r.Ranges)))
		}
		if len(wrong) > maxWrong {
			break
		}
	}
	return wrong
}

// options checks SELinux options.
func (s seLinux) options(at *field.Path, given *corev1.SELinuxOptions) (wrong field.ErrorList) {
	if s.Rule == runAsAny {
		return nil
	}
	if given == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	want := s.SELinuxOptions
	for _, x := range []struct{ name, want, given string }{
		{"level", sortedLevel(want.Level), sortedLevel(given.Level)}, {"role", want.Role, given.Role}, {"type", want.Type, given.Type}, {"user", want.User, given.User},
	} {
		if x.want != x.given {
			wrong = append(wrong, field.Invalid(at.Child(x.name), x.given, "must be "+x.want))
		}
	}
	return wrong
}

// sortedLevel returns a level whose categories, as in s0:c1,c2, are sorted.
func sortedLevel(level string) string {
	sensitivity, categories, ok := strings.Cut(level, ":")
	if !ok {
		return level
	}
	parts := strings.Split(categories, ",")
	slices.Sort(parts)
	return sensitivity + ":" + strings.Join(parts, ",")
}
