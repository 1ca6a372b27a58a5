package quota

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	names "github.com/portico-platform/portico/services/resource"
)

// Item is one object as quotas count it.
type Item struct {
	Used Amounts
	pod  *pod // nil for other objects
	// classes are the volume attributes classes that a claim uses, is to use or was given;
	// nil for other objects.
	classes []string
	// unrequested are the amounts that some container of the pod does not request.
	unrequested []string
	// kept is what a pod that is being deleted counts for after ends, when it must have stopped: its node may
	// be gone, and then no component reports it.
	kept Amounts
	ends time.Time
}

// At returns what the object counts for at a time of the API's clock.
func (i Item) At(now time.Time) Item {
	if !i.ends.IsZero() && now.After(i.ends) {
		i.Used = i.kept
	}
	return i
}

// stored is an object of a type that Weighs, with its spec undecoded.
type stored struct {
	Metadata struct {
		Annotations       map[string]string `json:"annotations"`
		DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
		GracePeriod       *int64            `json:"deletionGracePeriodSeconds"`
	} `json:"metadata"`
	Spec   json.RawMessage `json:"spec"`
	Status struct {
		podStatus
		Phase        string `json:"phase"`
		CurrentClass string `json:"currentVolumeAttributesClassName"`
		Modify       struct {
			TargetClass string `json:"targetVolumeAttributesClassName"`
		} `json:"modifyVolumeStatus"`
	} `json:"status"`
}

// Read returns what an object counts for, from its JSON in any version.
func (c Counter) Read(gr names.GroupResource, object []byte) (Item, error) {
	item := Item{Used: number(gr)}
	if !Weighs(gr) {
		return item, nil
	}
	o := stored{Spec: json.RawMessage("{}")}
	err := json.Unmarshal(object, &o)
	if err == nil {
		err = c.weigh(gr, &o, &item)
	}
	if err != nil {
		return item, fmt.Errorf("counting an object of %s: %w", gr, err)
	}
	return item, nil
}

// weigh adds the amounts in the object's spec to its count.
func (c Counter) weigh(gr names.GroupResource, o *stored, item *Item) error {
	switch gr {
	case pods:
		item.pod = &pod{}
		if err := json.Unmarshal(o.Spec, item.pod); err != nil {
			return err
		}
		item.pod.derive()
		item.unrequested = item.pod.unrequested()
		if phase := o.Status.Phase; phase != "Succeeded" && phase != "Failed" { // else it no longer uses anything
			if o.Metadata.DeletionTimestamp != nil && o.Metadata.GracePeriod != nil {
				item.kept, item.ends = item.Used, o.Metadata.DeletionTimestamp.Add(time.Duration(*o.Metadata.GracePeriod)*time.Second)
			}
			item.Used = item.Used.Plus(c.ofPod(item.pod, &o.Status.podStatus))
		}
	case services:
		var s service
		if err := json.Unmarshal(o.Spec, &s); err != nil {
			return err
		}
		item.Used = item.Used.Plus(s.amounts())
	case claims:
		var requested claim
		if err := json.Unmarshal(o.Spec, &requested); err != nil {
			return err
		}
		if class := o.Metadata.Annotations[c.vocabulary.Qualified("volume.beta", "storage-class")]; class != "" {
			requested.StorageClassName = class
		}
		item.Used = item.Used.Plus(requested.amounts(c.perClass))
		item.classes = slices.DeleteFunc([]string{requested.AttributesClassName, o.Status.CurrentClass, o.Status.Modify.TargetClass},
			func(name string) bool { return name == "" })
	}
	if ofDevices(gr) {
		var requested deviceClaim
		if err := json.Unmarshal(o.Spec, &requested); err != nil {
			return err
		}
		item.Used = item.Used.Plus(requested.amounts(c.perDeviceClass))
	}
	return nil
}

// service is the spec of a Service.
type service struct {
	Type                          string `json:"type"`
	Ports                         []any  `json:"ports"`
	AllocateLoadBalancerNodePorts *bool  `json:"allocateLoadBalancerNodePorts"`
}

func (s *service) amounts() Amounts {
	used := Amounts{}
	ports := *resource.NewQuantity(int64(len(s.Ports)), resource.DecimalSI)
	switch s.Type {
	case "NodePort":
		used["services.nodeports"] = ports
	case "LoadBalancer":
		used["services.loadbalancers"] = *resource.NewQuantity(1, resource.DecimalSI)
		if s.AllocateLoadBalancerNodePorts == nil || *s.AllocateLoadBalancerNodePorts {
			used["services.nodeports"] = ports
		}
	}
	return used
}

// claim is the spec of a PersistentVolumeClaim.
type claim struct {
	StorageClassName    string       `json:"storageClassName"`
	AttributesClassName string       `json:"volumeAttributesClassName"`
	Resources           Requirements `json:"resources"`
}

func (c *claim) amounts(perClass string) Amounts {
	used := Amounts{}
	storage, requested := c.Resources.Requests["storage"]
	if requested {
		used["requests.storage"] = storage
	}
	if c.StorageClassName == "" {
		return used
	}
	used[c.StorageClassName+perClass+"persistentvolumeclaims"] = *resource.NewQuantity(1, resource.DecimalSI)
	if requested {
		used[c.StorageClassName+perClass+"requests.storage"] = storage
	}
	return used
}

// In reports whether the object counts in a quota at all. Only pods and claims count in a
// quota with scopes.
func (i Item) In(q *Quota) bool {
	return !slices.ContainsFunc(q.Scopes(), func(s Scope) bool { return !i.Meets(s) })
}

// Meets reports whether the object is a pod or a claim that meets one condition.
func (i Item) Meets(s Scope) bool {
	switch {
	case i.pod != nil:
		return i.pod.in(s)
	case i.classes == nil || s.Name != "VolumeAttributesClass":
		return false
	case len(i.classes) == 0:
		return s.selects("")
	}
	return slices.ContainsFunc(i.classes, s.selects)
}

// Equal reports whether two states of an object count for the same in the same quotas.
func (i Item) Equal(other Item) bool {
	return i.Used.Equal(other.Used) && !i.Moved(other) && slices.Equal(i.classes, other.classes)
}

// Moved reports whether two states of a pod differ in whether it has a deadline, and so are
// in other scopes.
func (i Item) Moved(other Item) bool {
	return i.pod != nil && other.pod != nil && (i.pod.ActiveDeadlineSeconds == nil) != (other.pod.ActiveDeadlineSeconds == nil)
}

// Lacking returns, in order, what every container of a pod must request to be counted
// in a quota with these limits, and does not.
func (i Item) Lacking(hard Amounts) []string {
	var lacking []string
	for _, name := range i.unrequested {
		if _, limited := hard[name]; limited {
			lacking = append(lacking, name)
		}
	}
	return lacking
}
