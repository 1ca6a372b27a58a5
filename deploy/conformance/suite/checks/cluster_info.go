package checks

import . "github.com/portico-platform/portico/deploy/conformance/suite/harness"

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
}
