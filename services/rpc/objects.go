package rpc

import (
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

// This file converts types that several contracts share. For every X, xOut returns the
// message and xIn converts it back. xIn never fails: a missing message is a zero value.

func groupResourceOut(gr resource.GroupResource) *pb.GroupResource {
	return &pb.GroupResource{Group: gr.Group, Resource: gr.Resource, Custom: gr.Custom}
}

func groupResourceIn(m *pb.GroupResource) resource.GroupResource {
	return resource.GroupResource{Group: m.GetGroup(), Resource: m.GetResource(), Custom: m.GetCustom()}
}

func keyOut(k resource.Key) *pb.Key {
	return &pb.Key{Group: k.Group, Resource: k.Resource, Custom: k.Custom, Namespace: k.Namespace, Name: k.Name}
}

func keyIn(m *pb.Key) resource.Key {
	return resource.Key{
		GroupResource: resource.GroupResource{Group: m.GetGroup(), Resource: m.GetResource(), Custom: m.GetCustom()},
		Namespace:     m.GetNamespace(), Name: m.GetName(),
	}
}

func objectOut(o services.Object) *pb.Object {
	return &pb.Object{Key: keyOut(o.Key), Revision: o.Revision, Uid: o.UID, Json: o.JSON, Labels: o.Labels, Fields: o.Fields, Unreadable: o.Unreadable}
}

func objectIn(m *pb.Object) services.Object {
	return services.Object{Key: keyIn(m.GetKey()), Revision: m.GetRevision(), UID: m.GetUid(), JSON: m.GetJson(), Labels: m.GetLabels(), Fields: m.GetFields(), Unreadable: m.GetUnreadable()}
}

func userOut(u services.UserInfo) *pb.UserInfo {
	m := &pb.UserInfo{Name: u.Name, Uid: u.UID, Groups: u.Groups}
	if u.Extra != nil {
		m.Extra = make(map[string]*pb.Values, len(u.Extra))
		for name, values := range u.Extra {
			m.Extra[name] = &pb.Values{Values: values}
		}
	}
	return m
}

func userIn(m *pb.UserInfo) services.UserInfo {
	u := services.UserInfo{Name: m.GetName(), UID: m.GetUid(), Groups: m.GetGroups()}
	if len(m.GetExtra()) > 0 {
		u.Extra = make(map[string][]string, len(m.GetExtra()))
		for name, values := range m.GetExtra() {
			u.Extra[name] = values.GetValues()
		}
	}
	return u
}

// each converts a list; an empty list becomes nil.
func each[From, To any](list []From, translate func(From) To) []To {
	if len(list) == 0 {
		return nil
	}
	out := make([]To, len(list))
	for i := range list {
		out[i] = translate(list[i])
	}
	return out
}
