package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/resource"
)

// RecordKey is where the main etcd holds which types other clusters store. The watch hub that publishes
// writes it, so that a backup of the main etcd alone is noticed.
const RecordKey = "/portico/overrides"

// Recorded is an override as it is recorded.
type Recorded struct {
	// Types are as --etcd-servers-overrides names them: /events, coordination.k8s.io/leases.
	Types   []string `json:"types"`
	Servers []string `json:"servers"`
}

// FlagName returns the name of a type in --etcd-servers-overrides.
func FlagName(gr resource.GroupResource) string { return gr.Group + "/" + gr.Resource }

// String returns the override as the value of the flag.
func (r Recorded) String() string {
	servers := strings.Join(r.Servers, ";")
	values := make([]string, len(r.Types))
	for i, name := range r.Types {
		values[i] = name + "#" + servers
	}
	return strings.Join(values, ",")
}

// Record makes the record in the main etcd that of these overrides. Without overrides there is none. It
// writes only what has changed.
func Record(ctx context.Context, main clientv3.KV, overrides []Override) error {
	var all []Recorded
	for _, o := range overrides {
		one := Recorded{Servers: o.Servers}
		for _, gr := range o.Types {
			one.Types = append(one.Types, FlagName(gr))
		}
		slices.Sort(one.Types)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Recorded) int { return slices.Compare(a.Types, b.Types) })
	content, err := json.Marshal(all)
	if err != nil {
		return err
	}
	answer, err := main.Get(ctx, RecordKey)
	switch {
	case err != nil:
		return err
	case len(all) == 0 && len(answer.Kvs) == 0, len(answer.Kvs) > 0 && string(answer.Kvs[0].Value) == string(content):
		return nil
	case len(all) == 0:
		_, err = main.Delete(ctx, RecordKey)
	default:
		_, err = main.Put(ctx, RecordKey, string(content))
	}
	return err
}

// ParseRecord returns the overrides of a record; none for an empty one.
func ParseRecord(content []byte) (found []Recorded, err error) {
	if len(content) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(content, &found); err != nil {
		return nil, fmt.Errorf("%s is no record of overrides: %w", RecordKey, err)
	}
	return found, nil
}
