package harness

import "regexp"

// Checks are written in the vocabulary of the specification ("platform").
// N translates a text into the vocabulary in use; every request path, header
// and body, and every expected string, passes through it. This file is the
// only place that knows the other names.

// Vocabularies that can be chosen with -vocab or CONFORMANCE_VOCAB.
const (
	Platform = "platform"
	K8s      = "k8s"
)

var vocabulary = Platform

// Vocabulary returns the vocabulary in use.
func Vocabulary() string { return vocabulary }

// k8sNames are tried in order at each `platform` in a text; the first match wins.
var k8sNames = []struct{ from, to string }{
	{`application/vnd\.platform\.protobuf`, `application/vnd.kubernetes.protobuf`},
	{`\bplatform\.io/apiserver-client-nodeagent`, `kubernetes.io/kube-apiserver-client-kubelet`},
	{`\bplatform\.io/apiserver-client`, `kubernetes.io/kube-apiserver-client`},
	{`\bplatform\.io/nodeagent-serving`, `kubernetes.io/kubelet-serving`},
	{`\b(bootstrap|ingressclass|storageclass)\.platform\.io/`, `$1.kubernetes.io/`},
	{`\bnode\.platform\.io/(not-ready|unreachable)`, `node.kubernetes.io/$1`},
	{`\b([a-z]+(?:\.[a-z]+)?)\.platform\.io`, `$1.k8s.io`},
	{`\bplatform\.io/`, `kubernetes.io/`},
	{`\bplatform-(system|public|node-lease)\b`, `kube-$1`},
	{`\bx-platform-`, `x-kubernetes-`},
}

var compiled = func() (list []rule) {
	for _, n := range k8sNames {
		list = append(list, rule{regexp.MustCompile(n.from), n.to})
	}
	return list
}()

type rule struct {
	re *regexp.Regexp
	to string
}

// N returns s in the vocabulary in use.
func N(s string) string {
	if vocabulary == Platform {
		return s
	}
	for _, r := range compiled {
		s = r.re.ReplaceAllString(s, r.to)
	}
	return s
}
