// Package internal holds the functions of StorageVersions. It serves "Resources and their
// fields" of the specification.
package internal

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"storageVersionName":   storageVersionName,
		"storageVersionStatus": storageVersionStatus,
	},
	Cells: map[string]cell.Func{
		"showStorageVersions": showStorageVersions,
	},
}

// storageVersionName checks that a name is that of a resource: <group>.<resource>.
func storageVersionName(c *rules.Check, m, _ map[string]any, at *field.Path) {
	name, at := rules.Text(rules.Object(m, "metadata"), "name"), at.Field("metadata").Field("name")
	i := strings.LastIndex(name, ".")
	if i < 0 {
		c.Invalid(at, name, "name must be in the form of <group>.<resource>")
		return
	}
	for _, message := range validation.IsDNS1035Label(name[i+1:]) {
		c.Invalid(at, name, "the resource segment "+message)
	}
}

// storageVersionStatus checks what servers report.
func storageVersionStatus(c *rules.Check, status, _ map[string]any, at *field.Path) {
	for i, server := range rules.Objects(status, "storageVersions") {
		serverVersions(c, server, at.Field("storageVersions").Item(i))
	}
	commonVersion(c, status, at)
	for i, condition := range rules.Objects(status, "conditions") {
		at := at.Field("conditions").Item(i)
		c.Must(validation.IsQualifiedName, rules.Text(condition, "type"), at.Field("type"))
		c.Must(validation.IsQualifiedName, rules.Text(condition, "status"), at.Field("status"))
		for _, name := range []string{"reason", "message"} {
			if rules.Text(condition, name) == "" {
				c.Required(at.Field(name), name+" cannot be empty")
			}
		}
	}
}

// commonVersion checks that the common version is set if all servers have the same one, and
// only then.
func commonVersion(c *rules.Check, status map[string]any, at *field.Path) {
	versions, at := rules.Objects(status, "storageVersions"), at.Field("commonEncodingVersion")
	given, isGiven := status["commonEncodingVersion"]
	common := len(versions) > 0
	for _, version := range versions {
		common = common && rules.Text(version, "encodingVersion") == rules.Text(versions[0], "encodingVersion")
	}
	switch {
	case !common && isGiven:
		c.Invalid(at, given, "must not be set while servers do not agree on one version, or none has reported")
	case common && !isGiven:
		c.Required(at, "the common encoding version is "+rules.Text(versions[0], "encodingVersion"))
	case common && given != rules.Text(versions[0], "encodingVersion"):
		c.Invalid(at, given, "the actual common encoding version is "+rules.Text(versions[0], "encodingVersion"))
	}
}

// serverVersions checks the versions of one server.
func serverVersions(c *rules.Check, server map[string]any, at *field.Path) {
	c.Must(validation.IsDNS1123Subdomain, rules.Text(server, "apiServerID"), at.Field("apiServerID"))
	encoding, decodable := rules.Text(server, "encodingVersion"), rules.Texts(server, "decodableVersions")
	if message := apiVersion(encoding); message != "" {
		c.Invalid(at.Field("encodingVersion"), encoding, message)
	}
	for i, version := range decodable {
		if message := apiVersion(version); message != "" {
			c.Invalid(at.Field("decodableVersions").Item(i), version, message)
		}
	}
	if !slices.Contains(decodable, encoding) {
		c.Invalid(at.Field("decodableVersions"), rules.List(server, "decodableVersions"), "decodableVersions must include encodingVersion "+encoding)
	}
}

// apiVersion returns why a text is not a version with or without a group; empty if it is one.
func apiVersion(text string) string {
	group, version, hasGroup := strings.Cut(text, "/")
	var messages []string
	if !hasGroup {
		version = text
	} else {
		for _, message := range validation.IsDNS1123Subdomain(group) {
			messages = append(messages, "group part: "+message)
		}
	}
	for _, message := range validation.IsDNS1035Label(version) {
		messages = append(messages, "version part: "+message)
	}
	return strings.Join(messages, ",")
}

func showStorageVersions(o *cell.Object) any {
	var all []string
	for server := range o.Status.Get("storageVersions").Items() {
		all = append(all, server.Get("apiServerID").String()+"="+server.Get("encodingVersion").String())
	}
	if len(all) == 0 {
		return cell.None
	}
	return cell.AtMost(3, all)
}
