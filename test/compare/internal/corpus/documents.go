package corpus

import (
	"net/http"

	"github.com/portico-platform/portico/services/vocabulary"
)

// documents tests the discovery documents of a group version; those of the server belong to
// the first kind of all.
func documents(k *Kind, first bool) Case {
	get := func(name, path, accept string) Step {
		return Step{Name: name, Method: http.MethodGet, Path: path, Accept: accept}
	}
	steps := []Step{
		get("resources", k.GroupPath(), ""), get("resources-protobuf", k.GroupPath(), protobufType()), get("resources-yaml", k.GroupPath(), yamlType), get("resources-table", k.GroupPath(), tableAccept()),
		{Name: "post", Method: http.MethodPost, Path: k.GroupPath(), Body: "{}"}, get("unknown", k.GroupPath()+"/unknowns", ""), get("unknown-namespaced", k.GroupPath()+"/namespaces/a/unknowns/b", ""),
		get("openapi-v3", "/openapi/v3"+k.GroupPath(), ""),
	}
	if k.Group != "" {
		steps = append(steps, get("group", "/apis/"+k.Group, ""), get("openapi-v3-group", "/openapi/v3/apis/"+k.Group, ""), get("version-unknown", "/apis/"+k.Group+"/v9", ""))
	}
	if first {
		for _, version := range []string{"v2", "v2beta1", "v1"} {
			accept := jsonType + ";g=" + vocabulary.K8s().Group("apidiscovery.") + ";v=" + version + ";as=APIGroupDiscoveryList"
			steps = append(steps, get("aggregated-core-"+version, "/api", accept), get("aggregated-"+version, "/apis", accept), get("aggregated-or-"+version, "/apis", accept+","+jsonType))
		}
		steps = append(steps, get("core", "/api", ""), get("groups", "/apis", ""), get("openapi", "/openapi/v3", ""), get("version", "/version", ""), get("version-yaml", "/version", yamlType),
			get("health", "/healthz", ""), get("live", "/livez/ping", ""), get("ready-unknown", "/readyz/unknown", ""), get("missing", "/missing", ""), get("apis-missing", "/apis/missing.example.com", ""),
			get("api-missing", "/api/v2", ""), get("paths", "/apis/", ""), get("group-slash", "/api/v1/", ""), get("json-schema", "/openapi/v2", "text/html"), get("openapi-v2", "/openapi/v2", ""),
			get("openapi-v3-core", "/openapi/v3/api", ""), get("openapi-v3-groups", "/openapi/v3/apis", ""), get("openapi-v3-version", "/openapi/v3/version", ""), get("openapi-v3-configuration", "/openapi/v3/.well-known/openid-configuration", ""), get("openapi-v3-keys", "/openapi/v3/openid/v1/jwks", ""))
	}
	return Case{Kind: k, Name: "documents", Steps: steps}
}
