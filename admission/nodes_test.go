package admission_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/resource"
)

// asNode is what the agent of a node asks; name is empty for the name of the object n1.
func asNode(operation services.Operation, path, object string) services.AdmissionRequest {
	plural, subresource, _ := strings.Cut(path, "/")
	group := ""
	if of, in, ok := strings.Cut(plural, "."); ok {
		plural, group = of, in
	}
	r := createOf(group, plural, object)
	r.Operation, r.Subresource, r.Name = operation, subresource, "n1"
	r.User = services.UserInfo{Name: "system:node:n1", Groups: []string{"system:nodes", services.GroupAuthenticated}}
	if operation == services.OperationDelete {
		r.Object, r.OldObject = nil, []byte(object)
	}
	return r
}

// updated is asNode for an update.
func updated(path, before, now string) services.AdmissionRequest {
	r := asNode(services.OperationUpdate, path, now)
	r.OldObject = []byte(before)
	return r
}

// in changes the namespace of a request.
func in(namespace string, r services.AdmissionRequest) services.AdmissionRequest {
	r.Namespace = namespace
	return r
}

func TestNodeRestriction(t *testing.T) {
	open := func(t *testing.T) services.Admission {
		c := cluster(t)
		c.Put(t, namespaces, `{metadata: {name: platform-node-lease}}`)
		c.Put(t, core("nodes"), `{metadata: {name: n1, uid: u1}}`)
		c.Put(t, core("pods"), `{metadata: {name: mine, namespace: here, uid: p1}, spec: {nodeName: n1}}`)
		c.Put(t, core("pods"), `{metadata: {name: theirs, namespace: here, uid: p2}, spec: {nodeName: n2}}`)
		return started(t, c, alone("NodeRestriction")...)
	}
	kittest.LocalAndRemote(t, contract.Admission, open, func(t *testing.T, open func(*testing.T) services.Admission) {
		a := open(t)
		for _, cases := range []map[string]nodeCase{podsOfNodes(), objectsOfNodes(), tokensOfNodes()} {
			for name, x := range cases {
				_, err := a.Mutate(t.Context(), x.request)
				s := services.AsStatus(err)
				code := x.code
				if x.refused != "" && code == 0 {
					code = 403
				}
				if x.refused == "" && err != nil || x.refused != "" && (s == nil || s.Code != code || !strings.HasSuffix(s.Message, x.refused)) {
					t.Errorf("%s: %v, want %q", name, err, x.refused)
				}
				x.request.User = services.UserInfo{Name: "jane"}
				if _, err := a.Mutate(t.Context(), x.request); err != nil {
					t.Errorf("%s, by a user: %v", name, err)
				}
			}
		}
	})
}

// TestNodeRestrictionLater: from release 1.36 on, a node also writes only its own slices of
// devices, requests certificates only for itself and its pods, and tokens only for the audiences
// that a volume of the pod needs. Feature gates turn some of it off.
func TestNodeRestrictionLater(t *testing.T) {
	c := cluster(t)
	c.Put(t, core("nodes"), `{metadata: {name: n1, uid: u1}}`)
	c.Put(t, core("serviceaccounts"), `{metadata: {name: robot, namespace: here, uid: s1}}`)
	c.Put(t, core("persistentvolumeclaims"), `{metadata: {name: data, namespace: here}, spec: {volumeName: pv}}`)
	c.Put(t, core("persistentvolumeclaims"), `{metadata: {name: mine-scratch, namespace: here}, spec: {volumeName: disk}}`)
	c.Put(t, core("persistentvolumes"), `{metadata: {name: pv}, spec: {csi: {driver: files.example.com}}}`)
	c.Put(t, core("persistentvolumes"), `{metadata: {name: disk}, spec: {awsElasticBlockStore: {volumeID: v}}}`)
	drivers := resource.GroupResource{Group: "storage.platform.io", Resource: "csidrivers"}
	c.Put(t, drivers, `{metadata: {name: files.example.com}, spec: {tokenRequests: [{audience: files}]}}`)
	c.Put(t, drivers, `{metadata: {name: ebs.csi.aws.com}, spec: {tokenRequests: [{audience: sts}]}}`)
	c.Put(t, drivers, `{metadata: {name: inline.example.com}, spec: {tokenRequests: [{audience: inline}, {audience: ""}]}}`)
	c.Put(t, core("pods"), `{metadata: {name: mine, namespace: here, uid: p1}, spec: {nodeName: n1, serviceAccountName: robot, volumes: [
		{name: a, projected: {sources: [{configMap: {name: x}}, {serviceAccountToken: {audience: vault, path: t}}]}},
		{name: b, persistentVolumeClaim: {claimName: data}}, {name: scratch, ephemeral: {volumeClaimTemplate: {}}}, {name: c, csi: {driver: inline.example.com}}]}}`)
	c.Put(t, core("pods"), `{metadata: {name: broken, namespace: here, uid: p3}, spec: {nodeName: n1, volumes: [{name: b, persistentVolumeClaim: {claimName: none}}]}}`)
	c.Put(t, core("pods"), `{metadata: {name: static, namespace: here, uid: p4, annotations: {platform.io/config.mirror: x}}, spec: {nodeName: n1, serviceAccountName: robot}}`)
	c.Put(t, core("pods"), `{metadata: {name: theirs, namespace: here, uid: p2}, spec: {nodeName: n2, serviceAccountName: robot}}`)
	a := started(t, c, append(alone("NodeRestriction"), emulate136)...)
	for name, x := range laterCases(t) {
		_, err := a.Mutate(t.Context(), x.request)
		s := services.AsStatus(err)
		code := x.code
		if x.refused != "" && code == 0 {
			code = 403
		}
		if x.refused == "" && err != nil || x.refused != "" && (s == nil || s.Code != code || !strings.HasSuffix(s.Message, x.refused)) {
			t.Errorf("%s: %v, want %q", name, err, x.refused)
		}
	}
	gated := started(t, c, append(alone("NodeRestriction"), emulate136, "--feature-gates=ServiceAccountNodeAudienceRestriction=false,AllowInsecureKubeletCertificateSigningRequests=true")...)
	for name, refused := range map[string]bool{"for another": false, "an audience of none": false, "two audiences": false, "another's slice": true} {
		if _, err := gated.Mutate(t.Context(), laterCases(t)[name].request); (err != nil) != refused {
			t.Errorf("%s, without the features: %v", name, err)
		}
	}
}

func laterCases(t *testing.T) map[string]nodeCase {
	const create, remove = services.OperationCreate, services.OperationDelete
	const slices, own, others = "resourceslices.resource.platform.io", `{"spec":{"nodeName":"n1"}}`, `{"spec":{"nodeName":"n2"}}`
	token := func(pod, uid, audiences string) services.AdmissionRequest {
		r := asNode(create, "serviceaccounts/token", `{"spec":{"audiences":`+audiences+`,"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"`+pod+`","uid":"`+uid+`"}}}`)
		r.Name = "robot"
		return r
	}
	const certificates = "certificates.platform.io"
	signing := func(signer, name string) services.AdmissionRequest {
		raw, _ := json.Marshal(requestFor(t, name))
		return asNode(create, "certificatesigningrequests."+certificates, `{"spec":{"signerName":"`+signer+`","request":`+string(raw)+`}}`)
	}
	pcr := func(change ...string) services.AdmissionRequest {
		spec := `{"podName":"mine","podUID":"p1","nodeName":"n1","nodeUID":"u1","serviceAccountName":"robot","serviceAccountUID":"s1"}`
		return asNode(create, "podcertificaterequests."+certificates, `{"spec":`+strings.NewReplacer(change...).Replace(spec)+`}`)
	}
	claims := func(status string) string { return `{"spec":{"nodeName":"n1"},"status":{` + status + `}}` }
	cases := map[string]nodeCase{
		"its slice":                {request: asNode(create, slices, own)},
		"another's slice":          {request: asNode(create, slices, others), refused: "can only create ResourceSlice with the same NodeName as the requesting node"},
		"a slice of all":           {request: asNode(create, slices, `{"spec":{"allNodes":true}}`), refused: "can only create ResourceSlice with the same NodeName as the requesting node"},
		"its slice's end":          {request: asNode(remove, slices, own)},
		"another's slice's end":    {request: asNode(remove, slices, others), refused: "can only delete ResourceSlice with the same NodeName as the requesting node"},
		"a slice later":            {request: updated(slices, own, own)},
		"an owner":                 {request: updated("nodes", `{"metadata":{"name":"n1"}}`, `{"metadata":{"name":"n1","ownerReferences":[{"name":"a"}]}}`), refused: `node "n1" is not allowed to modify ownerReferences`},
		"a recovered claim":        {request: updated("persistentvolumeclaims/status", `{"metadata":{"name":"c"}}`, `{"metadata":{"name":"c"},"status":{"allocatedResources":{"storage":"1Gi"},"allocatedResourceStatuses":{"storage":"NodeResizePending"}}}`)},
		"claims of a status":       {request: updated("pods/status", claims(``), claims(`"resourceClaimStatuses":[{"name":"a","resourceClaimName":"b"}]`)), refused: `node "n1" cannot update resource claim statues`},
		"the same claims":          {request: updated("pods/status", claims(`"resourceClaimStatuses":[{"name":"a"}]`), claims(`"resourceClaimStatuses":[{"name":"a"}],"phase":"Running"`))},
		"the extended claim":       {request: updated("pods/status", claims(`"extendedResourceClaimStatus":{"resourceClaimName":"a"}`), claims(``)), refused: `node "n1" cannot update extended resource claim status`},
		"for itself":               {request: signing("platform.io/nodeagent-serving", "system:node:n1")},
		"for another":              {request: signing("platform.io/nodeagent-serving", "system:node:n2"), refused: "can only create a node CSR with CN=system:node:n1"},
		"for another client":       {request: signing("platform.io/apiserver-client-nodeagent", "admin"), refused: "can only create a node CSR with CN=system:node:n1"},
		"for another signer":       {request: signing("example.com/any", "admin")},
		"for nobody":               {request: asNode(create, "certificatesigningrequests."+certificates, `{"spec":{"signerName":"platform.io/nodeagent-serving","request":"YQ=="}}`), refused: "unable to parse csr: PEM block type must be CERTIFICATE REQUEST"},
		"for its pod":              {request: pcr()},
		"as another node":          {request: pcr("n1", "n2"), refused: `PodCertificateRequest.Spec.NodeName="n2", which is not the requesting node "n1"`},
		"as an older node":         {request: pcr("u1", "u0"), refused: `PodCertificateRequest for pod "here/mine" names node UID "u0", inconsistent with the running node ("u1")`, code: 409},
		"for an older pod":         {request: pcr("p1", "p0"), refused: `PodCertificateRequest for pod "here/mine" contains pod UID ("p0") which differs from running pod "p1"`, code: 409},
		"for no pod":               {request: pcr("mine", "none"), refused: `pods "none" not found`, code: 404},
		"for another's pod":        {request: pcr("mine", "theirs", "p1", "p2"), refused: `pod "here/theirs" is not running on node "n1" named in the PodCertificateRequest`},
		"for a mirror pod":         {request: pcr("mine", "static", "p1", "p4"), refused: `pod "here/static" is a mirror pod`},
		"for another account":      {request: pcr("robot", "admin"), refused: `PodCertificateRequest for pod "here/mine" contains serviceAccountName ("admin") that differs from running pod ("robot")`},
		"for an older account":     {request: pcr("s1", "s0"), refused: `PodCertificateRequest for pod "here/mine" names service account UID "s0", which differs from the running service account ("s1")`, code: 409},
		"a change of a request":    {request: updated("podcertificaterequests."+certificates, own, own), refused: "unexpected operation UPDATE"},
		"two audiences":            {request: token("mine", "p1", `["vault","files"]`), refused: "node may only request 0 or 1 audiences"},
		"an audience of none":      {request: token("mine", "p1", `["other"]`), refused: `audience "other" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience`},
		"an audience of unknown":   {request: token("broken", "p3", `["other"]`), refused: `error validating audience "other": persistentvolumeclaims "none" not found`},
		"an audience by a right":   {request: token("mine", "p1", `["granted"]`)},
		"no audience without need": {request: token("broken", "p3", `[]`), refused: `error validating audience "": persistentvolumeclaims "none" not found`},
	}
	for _, audiences := range []string{`[]`, `["vault"]`, `["files"]`, `["sts"]`, `["inline"]`, `[""]`} {
		cases["a token for "+audiences] = nodeCase{request: token("mine", "p1", audiences)}
	}
	for spec, what := range map[string]string{
		`,"resourceClaims":[{"name":"a"}]`: "resourceclaims", `,"volumes":[{"csi":{"driver":"x"}}]`: "csidrivers (via CSI volumes)", `,"volumes":[{"ephemeral":{}}]`: "persistentvolumeclaims (via ephemeral volumes)",
		`,"volumes":[{"glusterfs":{}}]`: "endpoints (via glusterFS volumes)", `,"volumes":[{"projected":{"sources":[{"serviceAccountToken":{}}]}}]`: "serviceaccounts (via projected volumes)",
		`,"volumes":[{"projected":{"sources":[{"downwardAPI":{}},{"clusterTrustBundle":{}}]}}]`: "clustertrustbundles", `,"volumes":[{"projected":{"sources":[{"podCertificate":{}}]}}]`: "podcertificates",
	} {
		cases[spec] = nodeCase{request: asNode(create, "pods", mirror(owner, spec)), refused: `node "n1" can not create pods that reference ` + what}
	}
	return cases
}

// requestFor is a certificate request with a common name, in PEM.
func requestFor(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

type nodeCase struct {
	request services.AdmissionRequest
	refused string // the end of the message
	code    int32  // 403 unless given
}

const owner = `"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"u1","controller":true}]`

// mirror is a mirror pod of the node n1 with more fields in its spec.
func mirror(metadata, spec string) string {
	return `{"metadata":{"annotations":{"platform.io/config.mirror":"x"},` + metadata + `},"spec":{"nodeName":"n1"` + spec + `}}`
}

func podsOfNodes() map[string]nodeCase {
	const create, update, remove = services.OperationCreate, services.OperationUpdate, services.OperationDelete
	pod := func(name string, r services.AdmissionRequest) services.AdmissionRequest { r.Name = name; return r }
	const mine, theirs = `{"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"nodeName":"n1"}}`, `{"metadata":{"name":"p"},"spec":{"nodeName":"n2"}}`
	cases := map[string]nodeCase{
		"a mirror pod":        {request: asNode(create, "pods", mirror(owner, ""))},
		"a pod of its own":    {request: asNode(create, "pods", `{"spec":{"nodeName":"n1"}}`), refused: `pod does not have "platform.io/config.mirror" annotation, node "n1" can only create mirror pods`},
		"on another node":     {request: asNode(create, "pods", strings.Replace(mirror(owner, ""), `"nodeName":"n1"`, `"nodeName":"n2"`, 1)), refused: `node "n1" can only create pods with spec.nodeName set to itself`},
		"without an owner":    {request: asNode(create, "pods", mirror(`"labels":{}`, "")), refused: `node "n1" can only create pods with an owner reference set to itself`},
		"with another owner":  {request: asNode(create, "pods", mirror(strings.Replace(owner, `"name":"n1"`, `"name":"n2"`, 1), "")), refused: `node "n1" can only create pods with an owner reference set to itself`},
		"with two owners":     {request: asNode(create, "pods", mirror(strings.Replace(owner, "[", "[{},", 1), "")), refused: `node "n1" can only create pods with a single owner reference set to itself`},
		"not controlled":      {request: asNode(create, "pods", mirror(strings.Replace(owner, "true", "false", 1), "")), refused: `node "n1" can only create pods with a controller owner reference set to itself`},
		"blocked":             {request: asNode(create, "pods", mirror(strings.Replace(owner, "true", `true,"blockOwnerDeletion":true`, 1), "")), refused: `node "n1" must not set blockOwnerDeletion on an owner reference`},
		"with another uid":    {request: asNode(create, "pods", mirror(strings.Replace(owner, "u1", "u2", 1), "")), refused: `node n1 UID mismatch: expected u2 got u1`},
		"with an account":     {request: asNode(create, "pods", mirror(owner, `,"serviceAccountName":"x"`)), refused: `node "n1" can not create pods that reference a service account`},
		"an update":           {request: updated("pods", mine, mine), refused: `unexpected operation "UPDATE", node "n1" can only create and delete mirror pods`},
		"an exec":             {request: asNode(services.OperationConnect, "pods/exec", `{}`)},
		"a binding":           {request: asNode(create, "pods/binding", `{}`), refused: `unexpected pod subresource "binding", only 'status' and 'eviction' are allowed`},
		"its status":          {request: updated("pods/status", mine, mine)},
		"another's status":    {request: updated("pods/status", theirs, mine), refused: `node "n1" can only update pod status for pods with spec.nodeName set to itself`},
		"labels by status":    {request: updated("pods/status", mine, `{"metadata":{"labels":{"a":"c"}},"spec":{"nodeName":"n1"}}`), refused: `node "n1" cannot update labels through pod status`},
		"bad labels":          {request: updated("pods/status", mine, `{"metadata":{"labels":{"a":["b"]}},"spec":{"nodeName":"n1"}}`), refused: `node "n1" cannot update labels through pod status`},
		"a deletion":          {request: pod("mine", asNode(remove, "pods", mine))},
		"another's deletion":  {request: pod("theirs", asNode(remove, "pods", mine)), refused: `node "n1" can only delete pods with spec.nodeName set to itself`},
		"no pod":              {request: pod("none", asNode(remove, "pods", mine)), refused: `pods "none" not found`, code: 404},
		"an eviction":         {request: pod("mine", asNode(create, "pods/eviction", `{}`))},
		"by the body's name":  {request: pod("", asNode(create, "pods/eviction", `{"metadata":{"name":"theirs"}}`)), refused: `node n1 can only evict pods with spec.nodeName set to itself`},
		"of no name":          {request: pod("", asNode(create, "pods/eviction", `{}`)), refused: `could not determine pod from request data`},
		"another's eviction":  {request: pod("theirs", asNode(create, "pods/eviction", `{}`)), refused: `node n1 can only evict pods with spec.nodeName set to itself`},
		"creation of status":  {request: asNode(create, "pods/status", `{}`), refused: `unexpected operation "CREATE"`},
		"update of eviction":  {request: asNode(update, "pods/eviction", `{}`), refused: `unexpected operation UPDATE`},
		"ephemeral container": {request: updated("pods/ephemeralcontainers", mine, mine), refused: `unexpected pod subresource "ephemeralcontainers", only 'status' and 'eviction' are allowed`},
	}
	for what, specs := range map[string][]string{
		"secrets": {`,"imagePullSecrets":[{"name":"x"}]`, `,"volumes":[{"secret":{"secretName":"x"}}]`, `,"volumes":[{"projected":{"sources":[{"secret":{"name":"x"}}]}}]`,
			`,"volumes":[{"csi":{"nodePublishSecretRef":{"name":"x"}}}]`, `,"volumes":[{"azureFile":{"secretName":"x"}}]`, `,"containers":[{"envFrom":[{"secretRef":{"name":"x"}}]}]`,
			`,"volumes":[{"cephfs":{"secretRef":{"name":"x"}}}]`, `,"volumes":[{"cinder":{"secretRef":{"name":"x"}}}]`, `,"volumes":[{"flexVolume":{"secretRef":{"name":"x"}}}]`,
			`,"volumes":[{"iscsi":{"secretRef":{"name":"x"}}}]`, `,"volumes":[{"rbd":{"secretRef":{"name":"x"}}}]`, `,"volumes":[{"scaleIO":{"secretRef":{"name":"x"}}}]`,
			`,"volumes":[{"storageos":{"secretRef":{"name":"x"}}}]`,
			`,"initContainers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"x"}}}]}]`, `,"ephemeralContainers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"x"}}}]}]`},
		"configmaps": {`,"volumes":[{"configMap":{"name":"x"}}]`, `,"volumes":[{"projected":{"sources":[{"configMap":{"name":"x"}}]}}]`,
			`,"containers":[{"envFrom":[{"configMapRef":{"name":"x"}}]}]`, `,"containers":[{"env":[{"valueFrom":{"configMapKeyRef":{"name":"x"}}}]}]`},
		"persistentvolumeclaims": {`,"volumes":[{"persistentVolumeClaim":{"claimName":"x"}}]`},
	} {
		for _, spec := range specs {
			cases[spec] = nodeCase{request: asNode(create, "pods", mirror(owner, spec)), refused: `node "n1" can not create pods that reference ` + what}
		}
	}
	return cases
}

func objectsOfNodes() map[string]nodeCase {
	const create, remove = services.OperationCreate, services.OperationDelete
	another := asNode(create, "nodes", `{"metadata":{"name":"n2"}}`)
	another.Name = "n2"
	nobody := asNode(create, "configmaps", `{}`)
	nobody.User.Name = "system:node:"
	outside := asNode(create, "pods", `{}`)
	outside.User.Groups = nil
	const leases, csi, claims = "leases.coordination.platform.io", "csinodes.storage.platform.io", "persistentvolumeclaims/status"
	deletion := func(path, name string) services.AdmissionRequest {
		r := asNode(remove, path, `{}`)
		r.Name = name
		return r
	}
	lease := func(r services.AdmissionRequest) services.AdmissionRequest { return in("platform-node-lease", r) }
	return map[string]nodeCase{
		"nobody":                 {request: nobody, refused: `could not determine node from user "system:node:"`},
		"outside the group":      {request: outside},
		"a config map":           {request: asNode(create, "configmaps", `{}`)},
		"itself":                 {request: asNode(create, "nodes", `{"metadata":{"labels":{"platform.io/hostname":"n1","team":"a"}},"spec":{"taints":[{"key":"a"}]}}`)},
		"another node":           {request: another, refused: `node "n1" is not allowed to modify node "n2"`},
		"its deletion":           {request: asNode(remove, "nodes", `{}`)},
		"with a config source":   {request: asNode(create, "nodes", `{"spec":{"configSource":{}}}`), refused: `node "n1" is not allowed to create pods with a non-nil configSource`},
		"with the maker's label": {request: asNode(create, "nodes", `{"metadata":{"labels":{"platform.io/role":"x","a.node-restriction.platform.io/b":"y"}}}`), refused: `node "n1" is not allowed to set the following labels: a.node-restriction.platform.io/b, platform.io/role`},
		"other labels later":     {request: updated("nodes/status", `{"metadata":{"labels":{"team":"a"}}}`, `{"metadata":{"labels":{"team":"b"}}}`)},
		"the maker's later":      {request: updated("nodes/status", `{"metadata":{"labels":{"platform.io/role":"x"}}}`, `{"metadata":{"labels":{}}}`), refused: `is not allowed to modify labels: platform.io/role`},
		"taints":                 {request: updated("nodes", `{"spec":{"taints":[{"key":"a"}]}}`, `{"spec":{}}`), refused: `node "n1" is not allowed to modify taints`},
		"no taints":              {request: updated("nodes", `{"spec":{"taints":[]}}`, `{"spec":{}}`)},
		"a config source later":  {request: updated("nodes", `{"spec":{}}`, `{"spec":{"configSource":{}}}`), refused: `node "n1" is not allowed to update configSource to a new non-nil configSource`},
		"the same source":        {request: updated("nodes", `{"spec":{"configSource":{}}}`, `{"spec":{"configSource":{}}}`)},
		"no source any more":     {request: updated("nodes", `{"spec":{"configSource":{}}}`, `{"spec":{}}`)},
		"what is no node":        {request: asNode(create, "nodes", `{"spec":[]}`), refused: "NodeSpec", code: 400},
		"its lease":              {request: lease(asNode(create, leases, `{"metadata":{"name":"n1"}}`))},
		"another's lease":        {request: lease(asNode(create, leases, `{"metadata":{"name":"n2"}}`)), refused: "can only access node lease with the same name as the requesting node"},
		"another's lease later":  {request: lease(deletion(leases, "n2")), refused: "can only access node lease with the same name as the requesting node"},
		"a lease elsewhere":      {request: asNode(create, leases, `{"metadata":{"name":"n1"}}`), refused: `can only access leases in the "platform-node-lease" system namespace`},
		"its CSINode":            {request: asNode(create, csi, `{"metadata":{"name":"n1"}}`)},
		"another's CSINode":      {request: asNode(create, csi, `{"metadata":{"name":"n2"}}`), refused: "can only access CSINode with the same name as the requesting node"},
		"another's later":        {request: deletion(csi, "n2"), refused: "can only access CSINode with the same name as the requesting node"},
		"a claim":                {request: asNode(create, "persistentvolumeclaims", `{}`), refused: "may only update PVC status"},
		"the size of a claim": {request: updated(claims, `{"metadata":{"name":"c","resourceVersion":"1"},"spec":{"volumeName":"v"}}`,
			`{"metadata":{"name":"c"},"spec":{"volumeName":"v"},"status":{"capacity":{"storage":"1Gi"},"conditions":[{"type":"Resizing"}]}}`)},
		"the phase of a claim": {request: updated(claims, `{"metadata":{"name":"c"}}`, `{"metadata":{"name":"c","finalizers":["a/b"]},"status":{"phase":"Lost"}}`),
			refused: `node "n1" is not allowed to update fields other than status.capacity and status.conditions: metadata, status`},
	}
}

func tokensOfNodes() map[string]nodeCase {
	request := func(reference string) services.AdmissionRequest {
		return asNode(services.OperationCreate, "serviceaccounts/token", `{"spec":{"boundObjectRef":`+reference+`}}`)
	}
	return map[string]nodeCase{
		"an account":         {request: asNode(services.OperationCreate, "serviceaccounts", `{}`)},
		"a token":            {request: request(`{"apiVersion":"v1","kind":"Pod","name":"mine","uid":"p1"}`)},
		"bound to nothing":   {request: request(`null`), refused: "node requested token not bound to a pod"},
		"bound to a secret":  {request: request(`{"apiVersion":"v1","kind":"Secret","name":"mine","uid":"p1"}`), refused: "node requested token not bound to a pod"},
		"bound without uid":  {request: request(`{"apiVersion":"v1","kind":"Pod","name":"mine"}`), refused: "node requested token with a pod binding without a uid"},
		"bound to an older":  {request: request(`{"apiVersion":"v1","kind":"Pod","name":"mine","uid":"p0"}`), refused: "(p0) does not match the UID in record. The object might have been deleted and then recreated"},
		"bound to another's": {request: request(`{"apiVersion":"v1","kind":"Pod","name":"theirs","uid":"p2"}`), refused: "node requested token bound to a pod scheduled on a different node"},
		"bound to no pod":    {request: request(`{"apiVersion":"v1","kind":"Pod","name":"none","uid":"p2"}`), refused: `pods "none" not found`, code: 404},
	}
}
