package pods

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"k8s.io/apimachinery/pkg/util/validation"
)

func privilegeEscalation(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["allowPrivilegeEscalation"] != false {
		return
	}
	if m["privileged"] == true {
		c.Invalid(at, m, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
	}
	if slices.Contains(rules.Texts(rules.Object(m, "capabilities"), "add"), "CAP_SYS_ADMIN") {
		c.Invalid(at, m, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
	}
}

// relabelling checks how volumes get their SELinux labels. Mounts with a label have a feature; an
// update keeps what is stored.
func relabelling(c *rules.Check, m, old map[string]any, at *field.Path) {
	how, given := m["seLinuxChangePolicy"].(string)
	supported := []string{"MountOption", "Recursive"}
	if !c.On("SELinuxMount") && old["seLinuxChangePolicy"] == nil {
		supported = supported[1:]
	}
	if given && !slices.Contains(supported, how) {
		c.NotSupported(at.Field("seLinuxChangePolicy"), how, supported...)
	}
}

// Limits of Windows account names, in bytes, and of credential specs.
const (
	largestCredentials = 64 << 10
	longestDomain      = 256
	longestUser        = 104
	notInUsers         = `"/\:;|=,+*?<>@[]`
)

var (
	netBIOS  = regexp.MustCompile(`^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$`)
	dnsNames = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*$`)
)

// windowsAccount validates the Windows account of a container.
func windowsAccount(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if name, given := m["gmsaCredentialSpecName"].(string); given {
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			c.Invalid(at.Field("gmsaCredentialSpecName"), name, problem)
		}
	}
	if credentials, given := m["gmsaCredentialSpec"].(string); given {
		switch {
		case credentials == "":
			c.Invalid(at.Field("gmsaCredentialSpec"), "", "gmsaCredentialSpec cannot be an empty string")
		case len(credentials) > largestCredentials:
			c.Invalid(at.Field("gmsaCredentialSpec"), credentials, "gmsaCredentialSpec size must be under 64 KiB")
		}
	}
	if name, given := m["runAsUserName"].(string); given {
		for _, problem := range windowsUser(name) {
			c.Invalid(at.Field("runAsUserName"), name, "runAsUserName"+problem)
		}
	}
}

// windowsUser returns the errors of a user name with or without a domain.
func windowsUser(name string) (problems []string) {
	user, domain := name, ""
	switch before, after, qualified := strings.Cut(name, `\`); {
	case name == "":
		return []string{" cannot be an empty string"}
	case strings.IndexFunc(name, unicode.IsControl) >= 0:
		return []string{" cannot contain control characters"}
	case strings.Contains(after, `\`):
		return []string{" cannot contain more than one backslash"}
	case qualified:
		user, domain = after, before
		if len(domain) >= longestDomain {
			problems = append(problems, fmt.Sprintf("'s Domain length must be under %d characters", longestDomain))
		}
		if !netBIOS.MatchString(domain) && !dnsNames.MatchString(domain) {
			problems = append(problems, "'s Domain doesn't match the NetBios nor the DNS format")
		}
	}
	switch {
	case user == "":
		problems = append(problems, "'s User cannot be empty")
	case len(user) > longestUser:
		problems = append(problems, fmt.Sprintf("'s User length must not be longer than %d characters", longestUser))
	}
	if user != "" && strings.Trim(user, ". ") == "" {
		problems = append(problems, "'s User cannot contain only periods or spaces")
	}
	if strings.ContainsAny(user, notInUsers) {
		problems = append(problems, "'s User cannot contain the following characters: "+notInUsers)
	}
	return problems
}
