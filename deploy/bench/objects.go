package main

import (
	"bytes"
	"fmt"
	"strings"
)

// The paths of the objects. Pods that are read are in another namespace than those that
// are written, so that lists have a fixed length.
const (
	pods          = "/api/v1/namespaces/default/pods"
	changes       = "/api/v1/namespaces/default/configmaps"
	namespaces    = "/api/v1/namespaces"
	written       = "writes" // a namespace
	writtenPods   = "/api/v1/namespaces/writes/pods"
	writtenMaps   = "/api/v1/namespaces/writes/configmaps"
	writtenApps   = "/apis/apps/v1/namespaces/writes/deployments"
	mark, digits  = "tick-", 10
	neverNumbered = mark + "0000000000"
)

// pod returns a pod of about 3 KiB, as a controller would create it; about 6 KiB with
// defaults and managedFields.
func pod(name string, i int) []byte {
	env := make([]string, 30)
	for j := range env {
		env[j] = fmt.Sprintf(`{"name":"SETTING_%02d","value":"value-%d-%d-of-a-usual-length"}`, j, i, j)
	}
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","labels":{"app":"web-%d","tier":"front"},
		"annotations":{"example.com/owner":"team-%d","example.com/note":"%s"}},"spec":{"nodeName":"node-%d","automountServiceAccountToken":false,
		"containers":[{"name":"main","image":"registry.example.com/web:1.2.3","ports":[{"containerPort":8080,"protocol":"TCP"}],
		"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},"env":[%s]}]}}`,
		name, i%50, i%7, neverNumbered, i%100, strings.Join(env, ","))
}

// configMap returns a small ConfigMap.
func configMap(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","labels":{"app":"web"}},
		"data":{"note":"%s","level":"info"}}`, name, neverNumbered)
}

// deployment returns a Deployment with 70 fields, to apply.
func deployment(name string) []byte {
	env := make([]string, 20)
	for j := range env {
		env[j] = fmt.Sprintf(`{"name":"SETTING_%02d","value":"value-%d"}`, j, j)
	}
	env[0] = fmt.Sprintf(`{"name":"SETTING_00","value":"%s"}`, neverNumbered)
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

// numbered is a body with a number that is changed in place, so that requests need no new
// body.
type numbered struct {
	text []byte
	at   int
}

func number(text []byte) (numbered, error) {
	at := bytes.Index(text, []byte(mark+"0"))
	if at < 0 || len(text) < at+len(neverNumbered) {
		return numbered{}, fmt.Errorf("no %s in %.200s", neverNumbered, text)
	}
	return numbered{text, at + len(mark)}, nil
}

// set writes the number into the body and returns the body.
func (b numbered) set(n int64) []byte {
	for i := digits - 1; i >= 0; i-- {
		b.text[b.at+i] = byte('0' + n%10)
		n /= 10
	}
	return b.text
}
