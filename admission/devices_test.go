package admission_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
)

// TestDevices checks where claims of devices may request the access of administrators, and who
// may write which part of their status.
func TestDevices(t *testing.T) {
	c := cluster(t)
	c.Put(t, namespaces, `{metadata: {name: admins, labels: {resource.platform.io/admin-access: "true"}}, status: {phase: Active}}`)
	a := started(t, c, append(only(), "--emulated-version=1.36")...)
	const resourceGroup = "resource.platform.io"
	in := func(namespace, plural, object string) services.AdmissionRequest {
		r := createOf(resourceGroup, plural, object)
		r.Namespace, r.Kind = namespace, "ResourceClaim"
		return r
	}
	status := func(user, before, after string) services.AdmissionRequest {
		r := in("here", "resourceclaims", `{"metadata":{"name":"c"},"status":{`+after+`}}`)
		r.Operation, r.Subresource, r.Name, r.OldObject, r.User.Name = services.OperationUpdate, "status", "c", []byte(`{"metadata":{"name":"c"},"status":{`+before+`}}`), user
		r.User.Extra = map[string][]string{"authentication.platform.io/node-name": {"n1"}}
		return r
	}
	const admin = `{"spec":{"devices":{"requests":[{"exactly":{}},{"exactly":{"adminAccess":true}}]}}}`
	const allocated = `"allocation":{"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}}`
	const report, another = `,"devices":[{"driver":"d.example.com","pool":"p","device":"x"}]`, `,"devices":[{"driver":"e.example.com","pool":"p","device":"x"}]`
	const driver = "system:serviceaccount:here:driver"
	elsewhere := strings.Replace(allocated, "n1", "n2", 1)
	for name, x := range map[string]struct {
		r       services.AdmissionRequest
		refused string // the field
	}{
		"plain":            {in("here", "resourceclaims", `{"spec":{"devices":{"requests":[{"exactly":{"adminAccess":false}}]}}}`), ""},
		"admin":            {in("here", "resourceclaims", admin), "spec.devices.requests[1].adminAccess"},
		"with a status":    {in("here", "resourceclaims", strings.TrimSuffix(admin, "}")+`,"status":{"allocation":{}}}`), "spec.devices.requests[1].adminAccess"},
		"admin's place":    {in("admins", "resourceclaims", admin), ""},
		"template":         {in("here", "resourceclaimtemplates", `{"spec":`+admin+`}`), "spec.devices.requests[1].adminAccess"},
		"v1beta1":          {in("here", "resourceclaims", `{"spec":{"devices":{"requests":[{"adminAccess":true}]}}}`), "spec.devices.requests[0].adminAccess"},
		"granted":          {status("scheduler", ``, `"allocation":{"devices":{"results":[{"adminAccess":true}]}}`), "status.allocation.devices.results[0].adminAccess"},
		"bound":            {status("scheduler", ``, allocated), ""},
		"not by anybody":   {status("jane", ``, allocated), "status.allocation"},
		"reserved":         {status("jane", allocated, allocated+`,"reservedFor":[{"uid":"1"}]`), "status.allocation"},
		"unchanged":        {status("jane", allocated+report, allocated+report), ""},
		"reported":         {status(driver, allocated, allocated+report), ""},
		"removed":          {status(driver, allocated+report, allocated), ""},
		"another's report": {status(driver, allocated, allocated+another), "status.devices"},
		"report by jane":   {status("jane", allocated, allocated+report), "status.devices"},
		"other node":       {status(driver, elsewhere, elsewhere+report), "status.devices"},
		"released":         {status("scheduler", allocated+report, ``), ""},
	} {
		_, err := a.Validate(t.Context(), x.r)
		switch s := services.AsStatus(err); {
		case x.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case x.refused != "" && (err == nil || s.Code != http.StatusUnprocessableEntity || s.Details == nil || s.Details.Causes[0].Field != x.refused):
			t.Errorf("%s: %v, want a cause of %s", name, err, x.refused)
		}
	}
	gated := started(t, c, append(only(), "--emulated-version=1.36", "--feature-gates=DRAResourceClaimGranularStatusAuthorization=false")...)
	if _, err := gated.Validate(t.Context(), status("jane", ``, allocated)); err != nil {
		t.Errorf("a status without the feature: %v", err)
	}
	if _, err := gated.Validate(t.Context(), in("here", "resourceclaims", admin)); err == nil {
		t.Error("access of an administrator without the feature")
	}
}

// TestPodCertificates checks that only those who may sign change the status of a request.
func TestPodCertificates(t *testing.T) {
	a := started(t, cluster(t), only()...)
	for user, refused := range map[string]bool{"signer": false, "jane": true} {
		for after, changes := range map[string]bool{`{"conditions":[{"type":"Denied"}]}`: true, `{}`: false} {
			r := createOf("certificates.platform.io", "podcertificaterequests", `{"spec":{"signerName":"example.com/x"},"status":`+after+`}`)
			r.Operation, r.Subresource, r.User.Name = services.OperationUpdate, "status", user
			r.OldObject = []byte(`{"spec":{"signerName":"example.com/x"},"status":{}}`)
			if _, err := a.Validate(t.Context(), r); (err != nil) != (refused && changes) || err != nil && !services.IsReason(err, services.ReasonForbidden) {
				t.Errorf("%s writes %s: %v", user, after, err)
			}
		}
	}
}
