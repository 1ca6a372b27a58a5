package resource

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// In v1beta1 a request of exactly one kind of device has its fields in the request itself, and
// a device has them in the field basic.

func claimFromV1beta1(_ vocabulary.Vocabulary, claim map[string]any) {
	edit.Member(claim, "spec", func(spec map[string]any) { requests(spec, requestFromV1beta1) })
}

func claimToV1beta1(_ vocabulary.Vocabulary, claim map[string]any) {
	edit.Member(claim, "spec", func(spec map[string]any) { requests(spec, requestToV1beta1) })
}

func templateFromV1beta1(v vocabulary.Vocabulary, template map[string]any) {
	edit.Member(template, "spec", func(spec map[string]any) { claimFromV1beta1(v, spec) })
}

func templateToV1beta1(v vocabulary.Vocabulary, template map[string]any) {
	edit.Member(template, "spec", func(spec map[string]any) { claimToV1beta1(v, spec) })
}

func requests(claimSpec map[string]any, change func(map[string]any)) {
	edit.Member(claimSpec, "devices", func(devices map[string]any) { edit.Items(devices, "requests", change) })
}

// ownFields are the fields of a request in both versions.
var ownFields = map[string]bool{"name": true, "firstAvailable": true}

func requestFromV1beta1(request map[string]any) {
	exactly, given := map[string]any{}, false
	for name, value := range request {
		if !ownFields[name] {
			exactly[name] = value
			given = given || value != "" && value != int64(0) && value != nil // typed clients write zero values
			delete(request, name)
		}
	}
	if given {
		request["exactly"] = exactly
	}
}

// requestToV1beta1 also names the class of a request for several kinds of devices: none.
func requestToV1beta1(request map[string]any) {
	spread(request, "exactly")
	if _, given := request["deviceClassName"]; !given {
		request["deviceClassName"] = ""
	}
}

func sliceFromV1beta1(_ vocabulary.Vocabulary, slice map[string]any) {
	edit.Member(slice, "spec", func(spec map[string]any) {
		edit.Items(spec, "devices", func(device map[string]any) { spread(device, "basic") })
	})
}

func sliceToV1beta1(_ vocabulary.Vocabulary, slice map[string]any) {
	edit.Member(slice, "spec", func(spec map[string]any) {
		edit.Items(spec, "devices", func(device map[string]any) {
			basic := map[string]any{}
			for name, value := range device {
				if name != "name" {
					basic[name] = value
					delete(device, name)
				}
			}
			device["basic"] = basic
		})
	})
}

// spread replaces a member by its members.
func spread(object map[string]any, name string) {
	members, _ := edit.Take(object, name)
	fields, ok := members.(map[string]any)
	if !ok {
		return
	}
	for field, value := range fields {
		object[field] = value
	}
}
