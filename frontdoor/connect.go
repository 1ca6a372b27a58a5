package frontdoor

import (
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/subresources"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// connect serves the subresources that hand a connection on to where a pod runs.
// Admission sees them; the object has to exist. Nodes are not reached by this
// service, so that the answer is an error that says so.
func (d *door) connect(_ http.ResponseWriter, r *request.Request) error {
	key := r.Key()
	if _, name, _, ok := utilnet.SplitSchemeNamePort(key.Name); ok {
		key.Name = name // a proxied pod or service is named with its scheme and port
	}
	object, err := d.store.Get(r.Context(), services.GetRequest{Key: key})
	if err != nil {
		return err
	}
	review := services.AdmissionRequest{UID: string(uuid.NewUUID()), Operation: services.OperationConnect, Group: r.Type.Group,
		Version: r.Type.Version, Kind: r.Subresource.Kind, Resource: r.Type.Resource, Subresource: r.Subresource.Name,
		Namespace: r.Namespace, Name: r.Name, User: r.User}
	if _, err := d.admission.Mutate(r.Context(), review); err != nil {
		return err
	}
	if _, err := d.admission.Validate(r.Context(), review); err != nil {
		return err
	}
	live, err := r.Engine.DecodeStored(r.Context(), object, r.Type)
	if err != nil {
		return err
	}
	node, _, _ := unstructured.NestedString(live, "spec", "nodeName")
	if r.Type.Resource == "pods" && node == "" {
		return services.BadRequest("pod %s does not have a host assigned", r.Name)
	}
	return subresources.NoNode(r)
}
