package worker

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// FuzzKubeconfig parses kubeconfig files: each is rejected or yields a valid client
// configuration. Nothing in it is run or connected to.
func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := clientcmd.Load(text)
		if err != nil {
			return
		}
		config, err := configFor(file, "w")
		if err != nil {
			return
		}
		if config.Host == "" || config.UserAgent != "portico-w" || config.QPS != requestsPerSecond {
			t.Errorf("host %q, user agent %q, %v requests a second", config.Host, config.UserAgent, config.QPS)
		}
	})
}
