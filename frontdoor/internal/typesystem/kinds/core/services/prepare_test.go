package services

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

func spec(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"spec": m}
}

// TestUpdateOfService: omitted addresses and ports are kept, and fields that the new type
// does not have are dropped.
func TestUpdateOfService(t *testing.T) {
	const plain = `{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`
	const open = `{type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], externalTrafficPolicy: Cluster,
		ports: [{name: a, port: 1, nodePort: 30001}, {name: b, port: 2, nodePort: 30002}]}`
	for name, c := range map[string]struct{ old, new, want string }{
		"address":          {plain, `{type: ClusterIP}`, `{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}`},
		"address, no type": {plain, `{}`, `{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}`},
		"external":         {plain, `{type: ExternalName, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`, `{type: ExternalName}`},
		"external, policy": {`{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], internalTrafficPolicy: Cluster}`,
			`{type: ExternalName, internalTrafficPolicy: Cluster}`, `{type: ExternalName}`},
		"external, cleared": {plain, `{type: ExternalName, clusterIP: "", clusterIPs: [10.0.0.1]}`, `{type: ExternalName}`},
		"external, changed": {plain, `{type: ExternalName, clusterIP: 10.0.0.2, clusterIPs: [10.0.0.2]}`,
			`{type: ExternalName, clusterIP: 10.0.0.2, clusterIPs: [10.0.0.2]}`},
		"one field for two": {`{type: ExternalName}`, `{type: ClusterIP, clusterIP: 10.0.0.2}`, `{type: ClusterIP, clusterIP: 10.0.0.2, clusterIPs: [10.0.0.2]}`},
		"node ports by name": {open, `{type: NodePort, ports: [{name: b, port: 3}, {name: c, port: 4}]}`,
			`{type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{name: b, port: 3, nodePort: 30002}, {name: c, port: 4}]}`},
		"node port moved": {open, `{type: NodePort, ports: [{name: a, port: 1}, {name: c, port: 4, nodePort: 30001}]}`,
			`{type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{name: a, port: 1}, {name: c, port: 4, nodePort: 30001}]}`},
		"closed": {open, `{type: ClusterIP, externalTrafficPolicy: Cluster, ports: [{name: a, port: 1, nodePort: 30001}]}`,
			`{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{name: a, port: 1}]}`},
		"closed, changed": {open, `{type: ClusterIP, ports: [{name: a, port: 1, nodePort: 30009}]}`,
			`{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{name: a, port: 1, nodePort: 30009}]}`},
		"health port": {`{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30003}`, `{type: LoadBalancer, externalTrafficPolicy: Local}`,
			`{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30003}`},
		"no health port": {`{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30003}`,
			`{type: LoadBalancer, externalTrafficPolicy: Cluster, healthCheckNodePort: 30003}`, `{type: LoadBalancer, externalTrafficPolicy: Cluster}`},
	} {
		t.Run(name, func(t *testing.T) {
			next, want := spec(t, c.new), spec(t, c.want)
			updateService(kinds.Write{}, next, spec(t, c.old))
			if !reflect.DeepEqual(next, want) {
				t.Errorf("got %v, want %v", next["spec"], want["spec"])
			}
		})
	}
}

// TestCreateOfService: clusterIPs follows clusterIP.
func TestCreateOfService(t *testing.T) {
	made := spec(t, `{clusterIP: 10.0.0.1}`)
	createService(kinds.Write{}, made, nil)
	if want := spec(t, `{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}`); !reflect.DeepEqual(made, want) {
		t.Errorf("got %v, want %v", made["spec"], want["spec"])
	}
}
