// Package system holds the checks of what pods set for operating systems: fields that another
// system has, and containers of Windows that run as processes of the host. It serves
// "Resources and their fields" of the specification.
package system

import (
	"fmt"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/podspec"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the file of pods refers to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"hostProcesses": hostProcesses,
		"osFields":      osFields,
	},
}

// windows is the operating system whose pods have no Linux settings.
const windows = "windows"

const (
	notForWindows = "cannot be set for a windows pod"
	notForLinux   = "windows options cannot be set for a linux pod"
)

// Fields of a security context that only Linux has: of a pod, and of a container.
var (
	ofPods = [...]string{"appArmorProfile", "fsGroup", "fsGroupChangePolicy", "runAsGroup", "runAsUser", "seLinuxChangePolicy", "seLinuxOptions",
		"seccompProfile", "supplementalGroups", "supplementalGroupsPolicy", "sysctls"}
	ofContainers = [...]string{"allowPrivilegeEscalation", "appArmorProfile", "capabilities", "privileged", "procMount", "readOnlyRootFilesystem",
		"runAsGroup", "runAsUser", "seLinuxOptions", "seccompProfile"}
)

// osFields checks that a pod and its containers have no settings of another operating system.
func osFields(c *rules.Check, m, _ map[string]any, at *field.Path) {
	name := rules.Text(rules.Object(m, "os"), "name")
	if m["os"] != nil && name == "" {
		c.Required(at.Field("os").Field("name"), "")
	}
	own, where := rules.Object(m, "securityContext"), at.Field("securityContext")
	switch name {
	case windows:
		for _, shared := range [...]string{"hostPID", "hostIPC", "hostUsers", "shareProcessNamespace"} {
			if value := m[shared]; value == true || value == false && (shared == "hostUsers" || shared == "shareProcessNamespace") {
				c.Forbidden(at.Field(shared), notForWindows)
			}
		}
		refuse(c, own, ofPods[:], where)
		if m["resources"] != nil {
			c.Forbidden(at.Field("resources"), "may not be set for a windows pod")
		}
		eachContext(m, at, func(context map[string]any, at *field.Path) { refuse(c, context, ofContainers[:], at) })
	case "linux":
		if own["windowsOptions"] != nil {
			c.Forbidden(where.Field("windowsOptions"), notForLinux)
		}
		eachContext(m, at, func(context map[string]any, at *field.Path) {
			if context["windowsOptions"] != nil {
				c.Forbidden(at.Field("windowsOptions"), notForLinux)
			}
		})
	}
}

// refuse reports the given fields of a security context.
func refuse(c *rules.Check, context map[string]any, fields []string, at *field.Path) {
	for _, name := range fields {
		if !rules.Empty(context[name]) {
			c.Forbidden(at.Field(name), notForWindows)
		}
	}
}

// eachContext calls do with the security context of each container, which may be nil, and its path.
func eachContext(spec map[string]any, at *field.Path, do func(context map[string]any, at *field.Path)) {
	for place, container := range podspec.Containers(spec) {
		do(rules.Object(container, "securityContext"), place.In(at).Field("securityContext"))
	}
}

// hostProcesses checks the containers that run as processes of the host: either all containers
// of a pod or none, and only on the network of the host.
func hostProcesses(c *rules.Check, m, _ map[string]any, at *field.Path) {
	const name = "hostProcess"
	ofPod, said := rules.Object(m, "securityContext", "windowsOptions")[name].(bool)
	all, those := 0, 0
	eachContext(m, at, func(context map[string]any, at *field.Path) {
		all++
		own, given := rules.Object(context, "windowsOptions")[name].(bool)
		if given && said && own != ofPod {
			c.Invalid(at.Field("windowsOptions").Field(name), own,
				fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", ofPod))
		}
		if own || !given && ofPod {
			those++
		}
	})
	if those == 0 {
		return
	}
	if those != all {
		c.Invalid(at, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers")
	}
	if m["hostNetwork"] != true {
		c.Invalid(at.Field("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers")
	}
}
