package load

import (
	"fmt"
	"strings"
)

// Note is a value in each of the objects, for the load to change.
const Note = "tick-0000000000"

// Pod returns a pod of about 3 KiB, as a controller would create it; about 6 KiB with
// defaults and managedFields.
func Pod(name string, i int) []byte {
	env := make([]string, 30)
	for j := range env {
		env[j] = fmt.Sprintf(`{"name":"SETTING_%02d","value":"value-%d-%d-of-a-usual-length"}`, j, i, j)
	}
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","labels":{"app":"web-%d","tier":"front"},
		"annotations":{"example.com/owner":"team-%d","example.com/note":"%s"}},"spec":{"nodeName":"node-%d","automountServiceAccountToken":false,
		"containers":[{"name":"main","image":"registry.example.com/web:1.2.3","ports":[{"containerPort":8080,"protocol":"TCP"}],
		"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},"env":[%s]}]}}`,
		name, i%50, i%7, Note, i%100, strings.Join(env, ","))
}

// ConfigMap returns a small ConfigMap.
func ConfigMap(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","labels":{"app":"web"}},
		"data":{"note":"%s","level":"info"}}`, name, Note)
}

// Deployment returns a Deployment with 70 fields, to apply.
func Deployment(name string) []byte {
	env := make([]string, 20)
	for j := range env {
		env[j] = fmt.Sprintf(`{"name":"SETTING_%02d","value":"value-%d"}`, j, j)
	}
	env[0] = fmt.Sprintf(`{"name":"SETTING_00","value":"%s"}`, Note)
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"%s",
		"labels":{"app":"web","tier":"front","owner":"team-1"},"annotations":{"example.com/contact":"team-1@example.com"}},
		"spec":{"replicas":3,"revisionHistoryLimit":5,"minReadySeconds":5,
		"selector":{"matchLabels":{"app":"web"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}},
		"template":{"metadata":{"labels":{"app":"web","tier":"front"}},"spec":{"terminationGracePeriodSeconds":20,"dnsPolicy":"ClusterFirst",
		"containers":[{"name":"main","image":"registry.example.com/web:1.2.3","command":["/web"],
		"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],
		"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},
		"readinessProbe":{"httpGet":{"path":"/ready","port":8080},"periodSeconds":5,"timeoutSeconds":2,"failureThreshold":3},"env":[%s]}]}}}}`, name, strings.Join(env, ","))
}
