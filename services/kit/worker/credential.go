package worker

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/connrotation"

	"github.com/portico-platform/portico/services/vocabulary"
)

// credentialGroup is the API group of credential plugins in the vocabulary of the
// specification (section "ExecCredential"). client-go itself runs those of the k8s
// vocabulary.
var credentialGroup = vocabulary.Platform().Group("client.authentication.")

// pluginTime bounds one run of a plugin.
const pluginTime = time.Minute

// credential is the ExecCredential that a plugin returns.
type credential struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Status     struct {
		Token       string     `json:"token"`
		Certificate string     `json:"clientCertificateData"`
		Key         string     `json:"clientKeyData"`
		Expires     *time.Time `json:"expirationTimestamp"`
	} `json:"status"`
	pair *tls.Certificate
}

// plugin runs a credential plugin when its last credential has expired or was rejected.
type plugin struct {
	command *api.ExecConfig
	info    []byte // KUBERNETES_EXEC_INFO
	// connections are closed when the certificate has changed. The requests after that have
	// another transport, which knows none of them.
	connections *connrotation.Dialer
	transport   func() http.RoundTripper

	mu       sync.Mutex
	last     *credential
	rejected bool // the last one
	next     http.RoundTripper
}

// takePlugin removes the plugin of credentialGroup from a context's user and returns it,
// nil if there is none.
func takePlugin(file *api.Config, context string) (*plugin, error) {
	c := file.Contexts[context]
	if c == nil || file.AuthInfos[c.AuthInfo] == nil {
		return nil, nil
	}
	user, cluster := file.AuthInfos[c.AuthInfo], file.Clusters[c.Cluster]
	command := user.Exec
	if command == nil || !strings.HasPrefix(command.APIVersion, credentialGroup+"/") {
		return nil, nil
	}
	user.Exec = nil
	spec := map[string]any{"interactive": false}
	if command.ProvideClusterInfo && cluster != nil {
		authority, err := authorityOf(cluster)
		if err != nil {
			return nil, err
		}
		about := map[string]any{"server": cluster.Server, "certificate-authority-data": authority}
		if config, ok := cluster.Extensions[credentialGroup+"/exec"].(*runtime.Unknown); ok {
			about["config"] = json.RawMessage(config.Raw)
		}
		spec["cluster"] = about
	}
	info, err := json.Marshal(map[string]any{"apiVersion": command.APIVersion, "kind": "ExecCredential", "spec": spec})
	connections := connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
	return &plugin{command: command, info: info, connections: connections}, err
}

// authorityOf returns the authority of a cluster (PEM), which may be in a file.
func authorityOf(cluster *api.Cluster) ([]byte, error) {
	if len(cluster.CertificateAuthorityData) > 0 || cluster.CertificateAuthority == "" {
		return cluster.CertificateAuthorityData, nil
	}
	return os.ReadFile(cluster.CertificateAuthority)
}

// attach configures a client to use the plugin's credentials.
func (p *plugin) attach(config *rest.Config) error {
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		return err
	}
	if secured == nil {
		secured = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	secured.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		c, _, err := p.get(r.Context())
		if err != nil || c.pair == nil {
			return &tls.Certificate{}, err
		}
		return c.pair, nil
	}
	p.transport = func() http.RoundTripper {
		return utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: secured.Clone(), DialContext: p.connections.DialContext})
	}
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Transport = &authorized{p}
	return nil
}

// authorized adds the token to requests.
type authorized struct{ plugin *plugin }

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	c, next, err := a.plugin.get(r.Context())
	if err != nil {
		return nil, err
	}
	if c.Status.Token != "" && r.Header.Get("Authorization") == "" {
		r = utilnet.CloneRequest(r)
		r.Header.Set("Authorization", "Bearer "+c.Status.Token)
	}
	response, err := next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		a.plugin.refused(c)
	}
	return response, err
}

// refused makes the next request run the plugin again.
func (p *plugin) refused(c *credential) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rejected = p.rejected || p.last == c
}

// get returns the cached credential, or a new one if it has expired, and the transport for
// its requests.
func (p *plugin) get(ctx context.Context) (*credential, http.RoundTripper, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.last
	if last != nil && !p.rejected && (last.Status.Expires == nil || time.Now().Before(*last.Status.Expires)) {
		return last, p.next, nil
	}
	c, err := p.run(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("credential plugin %s: %w", p.command.Command, err)
	}
	if last == nil || last.Status.Certificate != c.Status.Certificate {
		p.connections.CloseAll() // they were opened with the former one
		p.next = p.transport()
	}
	p.last, p.rejected = c, false
	return c, p.next, nil
}

func (p *plugin) run(ctx context.Context) (*credential, error) {
	ctx, cancel := context.WithTimeout(ctx, pluginTime)
	defer cancel()
	command := exec.CommandContext(ctx, p.command.Command, p.command.Args...) //nolint:gosec // the operator's own file names it
	command.Env = append(os.Environ(), "KUBERNETES_EXEC_INFO="+string(p.info))
	for _, v := range p.command.Env {
		command.Env = append(command.Env, v.Name+"="+v.Value)
	}
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, os.Stderr
	if err := command.Run(); err != nil {
		if missing := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist); missing && p.command.InstallHint != "" {
			err = fmt.Errorf("%w: %s", err, p.command.InstallHint)
		}
		return nil, err
	}
	c := &credential{}
	if err := json.Unmarshal(out.Bytes(), c); err != nil {
		return nil, fmt.Errorf("its output is not an ExecCredential: %w", err)
	}
	return c, c.check(p.command.APIVersion)
}

// check parses the certificate and returns an error for an incomplete credential.
func (c *credential) check(apiVersion string) error {
	switch s := c.Status; {
	case c.Kind != "ExecCredential" || c.APIVersion != apiVersion:
		return fmt.Errorf("its output is %s %s, not ExecCredential %s", c.Kind, c.APIVersion, apiVersion)
	case s.Token == "" && s.Certificate == "" && s.Key == "":
		return errors.New("status has neither a token nor a certificate")
	case (s.Certificate == "") != (s.Key == ""):
		return errors.New("status.clientCertificateData and status.clientKeyData must be used together")
	case s.Certificate == "":
		return nil
	}
	pair, err := tls.X509KeyPair([]byte(c.Status.Certificate), []byte(c.Status.Key))
	c.pair = &pair
	return err
}
