package quota

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	names "github.com/portico-platform/portico/services/resource"
)

// deviceClaims is the type of claims of devices, in the group of resources.
const deviceClaims = "resourceclaims"

func ofDevices(gr names.GroupResource) bool {
	return gr.Resource == deviceClaims && strings.HasPrefix(gr.Group, "resource.")
}

// mostDevices is the number of devices that a request for all of a class counts for: no claim
// can be allocated more.
const mostDevices = 32

// deviceClaim is the spec of a claim of devices, in any version.
type deviceClaim struct {
	Devices struct {
		Requests []struct {
			deviceRequest                  // of v1beta1
			Exactly        *deviceRequest  `json:"exactly"`
			FirstAvailable []deviceRequest `json:"firstAvailable"`
		} `json:"requests"`
	} `json:"devices"`
}

type deviceRequest struct {
	DeviceClassName string `json:"deviceClassName"`
	AllocationMode  string `json:"allocationMode"`
	Count           int64  `json:"count"`
}

func (r deviceRequest) devices() int64 {
	switch r.AllocationMode {
	case "ExactCount":
		return r.Count
	case "All":
		return mostDevices
	}
	return 0 // a mode of a later release
}

// amounts returns the number of devices by class. Of alternatives, each class counts for the
// largest.
func (c *deviceClaim) amounts(perClass string) Amounts {
	used := Amounts{}
	for _, request := range c.Devices.Requests {
		most := map[string]int64{}
		alternatives := request.FirstAvailable
		switch {
		case len(alternatives) > 0:
		case request.Exactly != nil:
			alternatives = []deviceRequest{*request.Exactly}
		default:
			alternatives = []deviceRequest{request.deviceRequest}
		}
		for _, one := range alternatives {
			most[one.DeviceClassName] = max(most[one.DeviceClassName], one.devices())
		}
		for class, n := range most {
			if class != "" {
				used.add(Amounts{class + perClass: *resource.NewQuantity(n, resource.DecimalSI)})
			}
		}
	}
	return used
}
