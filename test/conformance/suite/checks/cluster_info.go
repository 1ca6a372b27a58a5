package checks

import (
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func clusterInfo() {
	s := Section("Cluster-info ConfigMap")

	s.Check("INFO-01", "data.jws-kubeconfig-<token_id>: detached JWS, HS256 with the full token as shared secret", func(t *T) {
		t.PublishClusterInfo()
		token, _ := t.BootstrapToken("usage-bootstrap-signing", "true")
		jws := t.ClusterInfoSignature(token)
		kubeconfig := t.GET(ClusterInfo).OK().Obj().Str("data.kubeconfig")
		header, ok := VerifyDetachedHS256(jws, []byte(kubeconfig), SigningSecret(token))
		t.Eq("alg", header.Str("alg"), "HS256")
		t.True(ok, "a signature over data.kubeconfig made with the full token, got %q", jws)
		_, ok = VerifyDetachedHS256(jws, []byte(kubeconfig+"\n"), SigningSecret(token))
		t.True(!ok, "the signature not to verify over another payload")
	})
	s.Check("INFO-02", "usage-bootstrap-signing: true enables signing use; otherwise ignored", func(t *T) {
		t.PublishClusterInfo()
		quiet, _ := t.BootstrapToken("usage-bootstrap-authentication", "true")
		token, _ := t.BootstrapToken("usage-bootstrap-signing", "true")
		t.ClusterInfoSignature(token)
		t.True(!t.GET(ClusterInfo).OK().Obj().Has("data.jws-kubeconfig-"+quiet[:6]), "no signature for a token without the signing usage")
	})
	s.Check("INFO-03", "data.kubeconfig: cluster information only, there from the start, for anonymous clients too", func(t *T) {
		t.Until(30*time.Second, "cluster-info exists", func() bool { return t.GET(ClusterInfo).Code == 200 })
		t.Until(10*time.Second, "anonymous clients may read it", func() bool { return t.GET(ClusterInfo, As(Identity{})).Code == 200 })
		config := YAML("%s", t.GET(ClusterInfo, As(Identity{})).OK().Obj().Str("data.kubeconfig"))
		t.Eq("number of clusters", len(config.List("clusters")), 1)
		t.True(strings.HasPrefix(config.Str("clusters.0.cluster.server"), "https://"), "a server, got %q", config.Str("clusters.0.cluster.server"))
		t.Contains("the authority", FromB64(config.Str("clusters.0.cluster.certificate-authority-data")), "-----BEGIN CERTIFICATE-----")
		t.True(len(config.List("users")) == 0, "no users")
		t.GET(In("platform-public", "configmaps"), As(Identity{})).Is(403)
	}, On(Minimal), PlatformOnly("there, the installer makes it"))
}
