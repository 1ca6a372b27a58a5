package bootstrap

import (
	"context"
	"strings"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Deleted returns the suggested objects of fair shares that a start does not create, because a client may
// have deleted them: those of a release that does not update them, after the first start.
func Deleted(ctx context.Context, store services.Reader, v vocabulary.Vocabulary, r release.Release) (map[resource.Key]bool, error) {
	if AutoUpdate(v, r) != "" {
		return nil, nil
	}
	key := func(kind, name string) resource.Key {
		return resource.Key{GroupResource: resource.GroupResource{Group: v.Group("flowcontrol.apiserver."), Resource: strings.ToLower(kind) + "s"}, Name: name}
	}
	_, err := store.Get(ctx, services.GetRequest{Key: key("PriorityLevelConfiguration", "exempt")})
	if services.IsReason(err, services.ReasonNotFound) {
		return nil, nil
	}
	if err != nil && !services.IsReason(err, services.ReasonUnreadable) {
		return nil, err
	}
	objects, err := Fairness(v, r)
	deleted := map[resource.Key]bool{}
	for _, o := range objects {
		if !o.Mandatory {
			deleted[key(tree.Text(o.Object, "kind"), tree.Text(o.Object, "metadata", "name"))] = true
		}
	}
	return deleted, err
}
