package home

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/portico-platform/portico/services/kit/run"
)

const (
	tokenFile = "tokens.csv"
	// adminToken contains only the administrator's token, for use in a shell.
	adminToken = "admin-token"
	// adminConfig and workersConfig are client configurations. Each worker has a context
	// with its name.
	adminConfig, workersConfig = "kubeconfig", "workers.kubeconfig"

	adminUser = "admin"
	// masters is the group with all permissions.
	masters = "system:masters"
)

// workers returns the services that are clients of the API.
func workers() []string { return []string{"csr-signer", "token-cleaner", "lifecycle"} }

// workerUser returns the API user of a worker.
func workerUser(name string) string { return "system:portico:" + name }

// makeTokens returns the tokens of the folder's token file by user name. It adds missing
// users.
func (h *home) makeTokens() (map[string]string, error) {
	content, err := os.ReadFile(h.path(tokenFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rows := csv.NewReader(bytes.NewReader(content))
	rows.FieldsPerRecord = -1
	records, err := rows.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tokenFile, err)
	}
	tokens := map[string]string{}
	for _, record := range records {
		if len(record) > 1 {
			tokens[record[1]] = record[0]
		}
	}
	added := bytes.NewBuffer(content)
	add := func(user, groups string) {
		if tokens[user] == "" {
			tokens[user] = rand.Text()
			fmt.Fprintf(added, "%s,%s,%s,%q\n", tokens[user], user, user, groups)
		}
	}
	add(adminUser, masters)
	for _, name := range workers() {
		add(workerUser(name), "")
	}
	if added.Len() > len(content) {
		if err := h.write(tokenFile, added.Bytes()); err != nil {
			return nil, err
		}
	}
	_, err = h.readOrMake(adminToken, func() ([]byte, error) { return []byte(tokens[adminUser] + "\n"), nil })
	return tokens, err
}

// makeClientConfigs writes the kubeconfigs. In existing ones it updates the address and the
// CA certificate and keeps all other settings.
func (h *home) makeClientConfigs(server address, tokens map[string]string, certFile *pflag.Flag) error {
	cluster, err := h.cluster(server, certFile)
	if err != nil {
		return err
	}
	admin, all := api.NewConfig(), api.NewConfig()
	addContext(admin, clusterName, adminUser, tokens)
	for _, name := range workers() {
		addContext(all, name, workerUser(name), tokens)
	}
	return errors.Join(
		h.makeClientConfig(adminConfig, admin, cluster),
		h.makeClientConfig(workersConfig, all, cluster),
	)
}

// clusterName is the name of the cluster in client configurations.
const clusterName = "portico"

// addContext adds a user; the first one is current.
func addContext(config *api.Config, name, user string, tokens map[string]string) {
	config.AuthInfos[user] = &api.AuthInfo{Token: tokens[user]}
	config.Contexts[name] = &api.Context{Cluster: clusterName, AuthInfo: user}
	if config.CurrentContext == "" {
		config.CurrentContext = name
	}
}

// cluster returns the address of the front door and the certificate to verify it with: the
// CA of the folder, or the certificate given by --tls-cert-file.
func (h *home) cluster(server address, certFile *pflag.Flag) (api.Cluster, error) {
	cluster := api.Cluster{Server: server.url()}
	file := h.path(caCert)
	own := certFile == nil || !certFile.Changed
	if !own {
		file = certFile.Value.String()
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return cluster, run.Usagef("--tls-cert-file: %v", err)
	}
	cluster.CertificateAuthorityData = content
	if own {
		return cluster, nil
	}
	certs, err := cert.ParseCertsPEM(content)
	if err != nil {
		return cluster, run.Usagef("--tls-cert-file: %v", err)
	}
	if certs[0].VerifyHostname(server.host()) != nil && len(certs[0].DNSNames) > 0 {
		cluster.TLSServerName = certs[0].DNSNames[0]
	}
	return cluster, nil
}

func (h *home) makeClientConfig(file string, config *api.Config, cluster api.Cluster) error {
	existing, err := clientcmd.LoadFromFile(h.path(file))
	switch {
	case err == nil && (existing.Clusters[clusterName] == nil || sameCluster(*existing.Clusters[clusterName], cluster)):
		return nil
	case err == nil:
		config = existing
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", file, err)
	}
	config.Clusters[clusterName] = &cluster
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return h.write(file, content)
}

func sameCluster(a, b api.Cluster) bool {
	return a.Server == b.Server && a.TLSServerName == b.TLSServerName &&
		bytes.Equal(a.CertificateAuthorityData, b.CertificateAuthorityData)
}
