package crd_test

import (
	"context"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestScaleOfObjects(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	e, of, _ := w.engineOf(t, w.widgets(t, `{type: object, x-preserve-unknown-fields: true}`,
		`subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.have, labelSelectorPath: .status.pick}}`), crd.Setting{})
	widget := of("v1")
	for object, want := range map[string]struct{ whole, status string }{
		`spec: {size: 3}`:          {},
		`spec: {size: -1}`:         {whole: ".spec.size: Invalid value: -1: should be a non-negative integer"},
		`spec: {size: 2147483648}`: {whole: ".spec.size: Invalid value: 2147483648: should be less than or equal to 2147483647"},
		`spec: {size: many}`:       {whole: ".spec.size: Invalid value: 0: .spec.size accessor error: many is of the type string, expected int64"},
		`status: {have: -1}`:       {".status.have: Invalid value: -1", ".status.have: Invalid value: -1"},
		`status: {pick: 1}`:        {".status.pick accessor error", ".status.pick accessor error"},
	} {
		decoded := decode(t, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: team, uid: u}\n"+object)
		for subresource, want := range map[string]string{"": want.whole, "status": want.status} {
			err := e.Schemas.ValidateChange(t.Context(), schema.Change{Type: widget, Subresource: subresource, Object: decoded})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: got %v, want %s", subresource, object, err, want)
			}
		}
	}
	_, err := e.Show(context.Background(), storedWidget("v1", 5, `{}`), widget, widget.Subresources["scale"])
	if err == nil || services.AsStatus(err).Code != 500 || !strings.Contains(err.Error(), `the spec replicas field ".spec.size" does not exist`) {
		t.Errorf("a scale without replicas: %v", err)
	}
}
