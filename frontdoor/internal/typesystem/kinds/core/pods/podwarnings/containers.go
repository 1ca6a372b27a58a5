package podwarnings

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/podspec"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// containerWarnings warns of amounts, variables and ports of containers.
func containerWarnings(c *rules.Check, m map[string]any, at *field.Path) {
	amounts(c, rules.Object(m, "overhead"), at.Field("overhead"))
	ports := ports{c, map[string][]port{}, map[string]string{}}
	for place, container := range podspec.Containers(m) {
		at := place.In(at)
		for _, part := range [...]string{"limits", "requests"} {
			amounts(c, rules.Object(container, "resources", part), at.Field("resources").Field(part))
		}
		variables(c, rules.Objects(container, "env"), at.Field("env"))
		for i, one := range rules.Objects(container, "ports") {
			ports.add(one, at.Field("ports").Item(i))
		}
	}
}

// amounts warns of fractions of bytes.
func amounts(c *rules.Check, resources map[string]any, at *field.Path) {
	for _, name := range [...]string{"memory", "ephemeral-storage"} {
		if q := rules.Quantity(resources[name]); resources[name] != nil && q.MilliValue()%1000 != 0 {
			c.Warn(fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer", at.Entry(name), q.String()))
		}
	}
}

// variables warns of variables that hide one of the same name without using its value.
func variables(c *rules.Check, all []map[string]any, at *field.Path) {
	seen := map[string]bool{}
	for i, variable := range all {
		name, value := rules.Text(variable, "name"), rules.Text(variable, "value")
		former := "$(" + name + ")"
		if seen[name] && (variable["valueFrom"] != nil || value == former || !strings.Contains(value, former)) {
			c.Warn(fmt.Sprintf("%s: hides previous definition of %q, which may be dropped when using apply", at.Item(i), name))
		}
		seen[name] = true
	}
}

// port is a port of a container.
type port struct {
	at, ip string
	host   int64
}

// ports are the ports of a pod by number and protocol, and the places of their names.
type ports struct {
	*rules.Check
	all   map[string][]port
	named map[string]string
}

// add adds a port, and warns if another one has its number or name.
func (p ports) add(m map[string]any, where *field.Path) {
	one := port{where.String(), rules.Text(m, "hostIP"), rules.Number(m, "hostPort")}
	name, number, protocol := rules.Text(m, "name"), rules.Number(m, "containerPort"), rules.Text(m, "protocol")
	if one.ip != "" && one.host == 0 {
		p.Warn(fmt.Sprintf("%s: hostIP set without hostPort: {Name:%s HostPort:0 ContainerPort:%d Protocol:%s HostIP:%s}", one.at, name, number, protocol, one.ip))
	}
	key := fmt.Sprintf("%d/%s", number, protocol)
	for _, other := range p.all[key] {
		switch {
		case one.ip == other.ip && one.host == other.host:
			p.Warn(one.at + ": duplicate port definition with " + other.at)
		case one.host == 0 || other.host == 0:
			p.Warn(one.at + ": overlapping port definition with " + other.at)
		case one.host == other.host && (one.ip == "") != (other.ip == ""):
			p.Warn(one.at + ": dangerously ambiguous port definition with " + other.at)
		}
	}
	p.all[key] = append(p.all[key], one)
	if name == "" {
		return
	}
	if other := p.named[name]; other != "" {
		p.Warn(fmt.Sprintf("%s: duplicate port name %q with %s, services and probes that select ports by name will use %s", one.at, name, other, other))
	} else {
		p.named[name] = one.at
	}
}
