package controllers

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// metricsServer is the namespace, name and service account of metrics-server, as in its manifests.
const metricsServer, metricsNamespace = "metrics-server", "kube-system"

// startMetrics starts metrics-server as an extension of the API, with the roles of its own
// manifests, and returns its address. It is not in a pod, so its service is this machine.
func (s *site) startMetrics(t *testing.T) (address string) {
	t.Helper()
	s.kubectl(t, "create", "-f", filepath.Join(module(t, "sigs.k8s.io/metrics-server"), "manifests/base/rbac.yaml"))
	port := freePort(t)
	host := metricsServer + "." + metricsNamespace + ".svc"
	chain, key, err := cert.GenerateSelfSignedCertKey(host, nil, []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	_, authority := pem.Decode(chain)
	s.keep(t, "metrics-ca.crt", authority)
	config := s.configFor(t, metricsServer, api.AuthInfo{Token: s.token(t, metricsNamespace, metricsServer)})
	s.run(t, "controllers/metrics-server", "--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1", "--secure-port="+port, "--tls-cert-file="+s.keep(t, "metrics.crt", chain), "--tls-private-key-file="+s.keep(t, "metrics.key", key),
		"--kubelet-certificate-authority="+s.file("pki/signing-ca.crt"), "--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port",
		"--metric-resolution=10s", "--kubelet-request-timeout=8s")
	s.kubectl(t, "apply", "-f", s.keep(t, "metrics.yaml", fmt.Appendf(nil, `
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: %[2]s}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec: {group: metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, caBundle: %[4]s,
  service: {namespace: %[2]s, name: %[1]s, port: %[3]s}}
`, metricsServer, metricsNamespace, port, base64.StdEncoding.EncodeToString(authority))))
	s.kubectl(t, "wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io", "--timeout=2m")
	return "https://localhost:" + port
}

// token returns a token of a service account for an hour.
func (s *site) token(t *testing.T, namespace, name string) string {
	t.Helper()
	hour := int64(3600)
	request, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// measured: kubectl top prints what the containers use, as metrics-server has read it from the nodes.
func (s *site) measured(t *testing.T) {
	eventually(t, "the metrics of pods", func() error {
		lines, err := s.top(t, "pods", "--namespace="+namespace, "--selector=app=web")
		if err != nil {
			return err
		}
		problems := []error{want("pods", len(lines), 3)}
		for _, line := range lines {
			problems = append(problems, between(line[1], "150m", "250m"), want("memory", line[2], "64Mi"))
		}
		return errors.Join(problems...)
	})
	eventually(t, "the metrics of nodes", func() error {
		lines, err := s.top(t, "nodes")
		if err != nil {
			return err
		}
		problems := []error{want("nodes", len(lines), nodes)}
		for _, line := range lines {
			problems = append(problems, between(line[3], "1Mi", "2Gi"))
		}
		return errors.Join(problems...)
	})
	if lines, err := s.top(t, "pods", "--namespace="+namespace, "--containers", "--selector=app=web"); err != nil || len(lines) != 3 || lines[0][1] != "main" {
		t.Errorf("%q, %v", lines, err)
	}
}

// top returns the words of each line that kubectl top prints.
func (s *site) top(t *testing.T, args ...string) (lines [][]string, err error) {
	out, err := s.try(t, append([]string{"top"}, append(args, "--no-headers")...)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		lines = append(lines, strings.Fields(line))
	}
	return lines, nil
}

// between returns an error unless a quantity is within limits.
func between(quantity, low, high string) error {
	q, err := resource.ParseQuantity(quantity)
	if err != nil {
		return err
	}
	if q.Cmp(resource.MustParse(low)) < 0 || q.Cmp(resource.MustParse(high)) > 0 {
		return fmt.Errorf("%s is not between %s and %s", quantity, low, high)
	}
	return nil
}

// metricsRights: metrics-server knows the users of Portico's front door by its certificate, and
// asks Portico who others are and what all may do.
func (s *site) metricsRights(t *testing.T, address string) {
	for _, name := range []string{"reader", "nobody"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The role view has the rights of the aggregated role of metrics-server.
	s.kubectl(t, "create", "rolebinding", "reader", "--clusterrole=view", "--serviceaccount="+namespace+":reader", "--namespace="+namespace)
	front := rest.AnonymousClientConfig(s.config)
	direct := &rest.Config{Host: address, TLSClientConfig: rest.TLSClientConfig{CAFile: s.file("metrics-ca.crt")}}
	reader, nobody := s.token(t, namespace, "reader"), s.token(t, namespace, "nobody")
	for _, c := range []struct {
		name, token string
		to          *rest.Config
		header      http.Header
		code        int
		said        string
	}{
		{"reader", reader, front, nil, 200, "PodMetricsList"},
		{"nobody", nobody, front, nil, 403, `User \"system:serviceaccount:work:nobody\" cannot list resource \"pods\" in API group \"metrics.k8s.io\"`},
		{"reader beside the front door", reader, direct, nil, 200, "PodMetricsList"},
		{"nobody beside the front door", nobody, direct, nil, 403, `system:serviceaccount:work:nobody`},
		{"headers without the certificate of the front door", "", direct, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, 403, `system:anonymous`},
		{"an invalid token", "none", direct, nil, 401, "Unauthorized"},
		{"headers through the front door", nobody, front, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, 403, `system:serviceaccount:work:nobody`},
	} {
		t.Run(c.name, func(t *testing.T) {
			eventually(t, "the answer", func() error {
				code, body, err := ask(t, c.to, c.token, c.header)
				if err != nil {
					return err
				}
				return errors.Join(want("status", code, c.code), want("said "+c.said+" in "+body, strings.Contains(body, c.said), true))
			})
		})
	}
}

// ask lists the metrics of pods.
func ask(t *testing.T, to *rest.Config, token string, header http.Header) (code int, body string, err error) {
	t.Helper()
	to = rest.CopyConfig(to)
	to.BearerToken = token
	client, err := rest.HTTPClientFor(to)
	if err != nil {
		return 0, "", err
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to.Host+"/apis/metrics.k8s.io/v1beta1/namespaces/"+namespace+"/pods", nil)
	if err != nil {
		return 0, "", err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(response.Body)
	return response.StatusCode, b.String(), err
}
