package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// writeScenarios measure writes of small and of usual objects. Every client has
// an object of its own to change, so that no write waits for another.
func writeScenarios() []scenario {
	return []scenario{
		{"create config maps", false, createSmall},
		{"replace a config map", false, changing(smallObject, replace)},
		{"merge patch of a config map", false, changing(smallObject, mergePatch)},
		{"apply of a deployment", false, changing(noObject, apply(1))},
		{"apply that changes nothing", false, changing(noObject, apply(1<<30))},
	}
}

const deployments = "/apis/apps/v1/namespaces/default/deployments"

// names tells the objects of all scenarios apart.
var names atomic.Int64

func createSmall(ctx context.Context, t *target, s *settings) (samples, error) {
	return many(s.clients, during(s.duration), func() error {
		_, err := t.do(ctx, http.MethodPost, configMaps, small(fmt.Sprintf("small-%09d", names.Add(1)), 0))
		return err
	})
}

func small(name string, i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"bench"}},"data":{"one":"%d","two":"a-value-of-a-usual-length"}}`, name, i)
}

// write is one change of a client's object.
type write func(ctx context.Context, t *target, name string, i int) error

func noObject(context.Context, *target, string, int) error { return nil }

func smallObject(ctx context.Context, t *target, name string, i int) error {
	_, err := t.do(ctx, http.MethodPost, configMaps, small(name, i))
	return err
}

func replace(ctx context.Context, t *target, name string, i int) error {
	_, err := t.do(ctx, http.MethodPut, configMaps+"/"+name, small(name, i))
	return err
}

func mergePatch(ctx context.Context, t *target, name string, i int) error {
	return t.patch(ctx, configMaps+"/"+name, "application/merge-patch+json", fmt.Appendf(nil, `{"data":{"one":"%d"}}`, i))
}

// apply applies a deployment of 70 fields that changes with every so manieth time.
func apply(every int) write {
	return func(ctx context.Context, t *target, name string, i int) error {
		body := strings.NewReplacer("NAME", name, "REPLICAS", fmt.Sprint(1+i/every)).Replace(deployment)
		return t.patch(ctx, deployments+"/"+name+"?fieldManager=bench", "application/apply-patch+yaml", []byte(body))
	}
}

// changing has each client prepare an object and then change it again and again.
func changing(prepare, change write) func(context.Context, *target, *settings) (samples, error) {
	return func(ctx context.Context, t *target, s *settings) (samples, error) {
		free := make(chan *owned, s.clients)
		for range s.clients {
			o := &owned{name: fmt.Sprintf("own-%09d", names.Add(1))}
			if err := prepare(ctx, t, o.name, 0); err != nil {
				return samples{}, err
			}
			free <- o
		}
		return many(s.clients, during(s.duration), func() error {
			o := <-free
			defer func() { free <- o }()
			o.changes++
			return change(ctx, t, o.name, o.changes)
		})
	}
}

// owned is the object of one client.
type owned struct {
	name    string
	changes int
}

// patch sends one patch.
func (t *target) patch(ctx context.Context, path, mediaType string, body []byte) error {
	response, err := t.sendAs(ctx, t.client, request{http.MethodPatch, path, mediaType, body})
	if err != nil {
		return err
	}
	return drain(response)
}

// deployment is what a careful team would write.
const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"NAME","labels":{"app":"web","tier":"front","team":"shop","release":"r1"},
"annotations":{"example.com/owner":"shop","example.com/repo":"shop/web","example.com/commit":"0123456789abcdef"}},
"spec":{"replicas":REPLICAS,"revisionHistoryLimit":5,"minReadySeconds":5,"progressDeadlineSeconds":300,"selector":{"matchLabels":{"app":"web","tier":"front"}},
"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}},
"template":{"metadata":{"labels":{"app":"web","tier":"front","team":"shop"},"annotations":{"example.com/scrape":"true","example.com/port":"9090"}},
"spec":{"serviceAccountName":"web","terminationGracePeriodSeconds":60,"nodeSelector":{"disk":"ssd"},"securityContext":{"runAsNonRoot":true,"runAsUser":1000,"fsGroup":1000},
"containers":[{"name":"main","image":"registry.example.com/shop/web:1.2.3","imagePullPolicy":"IfNotPresent","args":["--port=8080","--metrics=9090"],
"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"},{"name":"metrics","containerPort":9090,"protocol":"TCP"}],
"env":[{"name":"MODE","value":"production"},{"name":"REGION","value":"eu"},{"name":"POD","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},
{"name":"PASSWORD","valueFrom":{"secretKeyRef":{"name":"web","key":"password"}}}],
"resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"250m","memory":"256Mi"}},
"livenessProbe":{"httpGet":{"path":"/live","port":"http","scheme":"HTTP"},"periodSeconds":10,"timeoutSeconds":2},
"readinessProbe":{"httpGet":{"path":"/ready","port":"http","scheme":"HTTP"},"periodSeconds":5,"failureThreshold":2},
"volumeMounts":[{"name":"config","mountPath":"/etc/web","readOnly":true},{"name":"cache","mountPath":"/var/cache/web"}],
"securityContext":{"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}},
{"name":"proxy","image":"registry.example.com/mesh/proxy:4.5","imagePullPolicy":"IfNotPresent","ports":[{"name":"proxy","containerPort":15001,"protocol":"TCP"}],
"resources":{"limits":{"cpu":"200m","memory":"128Mi"}},"volumeMounts":[{"name":"cache","mountPath":"/var/cache/proxy"}]}],
"volumes":[{"name":"config","configMap":{"name":"web","defaultMode":420}},{"name":"cache","emptyDir":{"sizeLimit":"1Gi"}}]}}}}`
