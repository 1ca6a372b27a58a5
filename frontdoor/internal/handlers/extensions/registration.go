package extensions

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/locate"
	"github.com/portico-platform/portico/services/tree"
)

// servicePort is the port of a service reference without one.
const servicePort = 443

// registration is an APIService.
type registration struct {
	name, uid string
	// local is true for one without a service, which is not proxied.
	local          bool
	group, version string
	// groupPriority and versionPriority order groups, and the versions of a group.
	groupPriority, versionPriority int64
	service                        locate.Reference
	authorities                    string // PEM
	insecure                       bool
	// condition is the condition Available; its zero value is a missing one.
	condition condition
	// unread is the error of an APIService that cannot be read and of which only the group version is known.
	unread error
}

// unread returns what is known of APIServices that cannot be read: the group version by their names, which must not be
// answered as if nobody served it.
func unread(objects []changes.Unread) (all []registration) {
	for _, u := range objects {
		if version, group, ok := strings.Cut(u.Key.Name, "."); ok && !u.Known {
			all = append(all, registration{name: u.Key.Name, group: group, version: version, unread: u.Err()})
		}
	}
	return all
}

// groupVersion is the path segment of a group version.
func (r registration) groupVersion() string { return r.group + "/" + r.version }

// portOf returns the port of a service reference.
func portOf(service map[string]any) intstr.IntOrString {
	return intstr.FromInt32(int32(cmp.Or(tree.Number(service, "port"), servicePort))) //nolint:gosec // validated
}

// decode reads a stored APIService. It returns changes.ErrSkip for a local one that says
// so.
func decode(o services.Object) (registration, error) {
	object, err := tree.Decode(o.JSON)
	if err != nil {
		return registration{}, err
	}
	spec := tree.Child(object, "spec")
	service := tree.Child(spec, "service")
	if service == nil && conditionOf(object) == localCondition {
		return registration{}, changes.ErrSkip
	}
	authorities, err := base64.StdEncoding.DecodeString(tree.Text(spec, "caBundle"))
	if err != nil {
		return registration{}, fmt.Errorf("spec.caBundle: %w", err)
	}
	return registration{
		name: o.Key.Name, uid: tree.Text(object, "metadata", "uid"), local: service == nil, group: tree.Text(spec, "group"), version: tree.Text(spec, "version"),
		groupPriority: tree.Number(spec, "groupPriorityMinimum"), versionPriority: tree.Number(spec, "versionPriority"),
		service:     locate.Reference{Namespace: tree.Text(service, "namespace"), Name: tree.Text(service, "name"), Port: portOf(service)},
		authorities: string(authorities), insecure: spec["insecureSkipTLSVerify"] == true,
		condition: conditionOf(object),
	}, nil
}
