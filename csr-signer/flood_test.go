package csrsigner

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/vocabulary"
)

// nodeRequest returns a request for the certificate of a node that is to be decided.
func nodeRequest(t *testing.T, name, username string, groups ...any) *unstructured.Unstructured {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}}}, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	object := request(t, vocabulary.Platform().Signers.NodeClient, "")
	object.SetName(name)
	spec := object.Object["spec"].(map[string]any)
	spec["username"], spec["groups"], spec["request"] = username, groups, base64.StdEncoding.EncodeToString(text)
	spec["usages"] = []any{"client auth", "digital signature", "key encipherment"}
	return object
}

// approveJane gives a signer an approver for which only jane has the permission. review is called for each
// question about another.
func approveJane(s *signer, api *fake.FakeDynamicClient, review func()) {
	node := vocabulary.Platform().Signers.NodeClient
	s.approver = &approver{requests: s.requests, reviews: api.Resource(reviewType), profile: s.profiles[node], signer: node,
		vocabulary: vocabulary.Platform(), denied: newDenials(s.clock), log: s.log}
	api.PrependReactor("create", reviewType.Resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		object := a.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured).DeepCopy()
		user, _, _ := unstructured.NestedString(object.Object, "spec", "user")
		if user != "jane" {
			review()
		}
		return true, object, unstructured.SetNestedField(object.Object, user == "jane", "status", "allowed")
	})
}

// TestRequestsShareADenial: however many requests a requester without the permission has, they cost one
// question a second, and another requester is asked about for itself.
func TestRequestsShareADenial(t *testing.T) {
	var flood []*unstructured.Unstructured
	for n := range 100 {
		flood = append(flood, nodeRequest(t, fmt.Sprintf("flood-%d", n), "eve"))
	}
	s, api := newSigner(t, flood...)
	questions := 0
	approveJane(s, api, func() { questions++ })
	decide := func(objects ...*unstructured.Unstructured) {
		for _, object := range objects {
			if again, err := s.reconcile(t.Context(), object); again != recheckAfter || err != nil {
				t.Fatalf("%v, %v", again, err)
			}
		}
	}
	for _, step := range []struct {
		passes time.Duration
		want   int
	}{{0, 1}, {deniedFor - 1, 1}, {1, 2}, {-time.Hour, 3}} {
		now := s.clock.(*clocktesting.FakeClock)
		now.SetTime(now.Now().Add(step.passes))
		if decide(flood...); questions != step.want {
			t.Errorf("%d questions about 100 requests, want %d", questions, step.want)
		}
	}
	decide(nodeRequest(t, "other", "mallory"), nodeRequest(t, "other", "eve", "staff"))
	if questions != 5 {
		t.Errorf("%d questions, want those about another user and about the same one in a group", questions)
	}
}

// waiting waits before each question, outside the client, which answers one call at a time.
type waiting struct {
	dynamic.ResourceInterface
	answer <-chan struct{}
}

func (w waiting) Create(ctx context.Context, object *unstructured.Unstructured, o metav1.CreateOptions, subresources ...string) (*unstructured.Unstructured, error) {
	<-w.answer
	return w.ResourceInterface.Create(ctx, object, o, subresources...)
}

// TestAFloodOfRequests: a request is approved after a few of the many of another requester, each of which needs a
// question of its own.
func TestAFloodOfRequests(t *testing.T) {
	const many = 400
	var flood []*unstructured.Unstructured
	for n := range many {
		flood = append(flood, nodeRequest(t, fmt.Sprintf("flood-%d", n), fmt.Sprintf("system:serviceaccount:evil:a%d", n)))
	}
	s, api := newSigner(t, flood...)
	var asked atomic.Int32
	answer := make(chan struct{})
	approveJane(s, api, func() { asked.Add(1) })
	s.approver.reviews = waiting{s.approver.reviews, answer}
	informer := worker.NewInformer(s.requests, "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.controller(informer, clock.RealClock{}).Run(ctx) }()
	select {
	case answer <- struct{}{}: // the first has been asked about
	case <-time.After(30 * time.Second):
		t.Fatal("nothing is asked")
	}
	if _, err := s.requests.Create(t.Context(), nodeRequest(t, "one", "jane"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	approved := func() bool {
		object, err := s.requests.Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		return len(conditions) > 0
	}
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for !approved() && asked.Load() < many {
		<-ticks.C
		select {
		case answer <- struct{}{}:
		default:
		}
	}
	if n := asked.Load(); n > many/4 {
		t.Errorf("it was approved after %d requests of another requester", n)
	}
	cancel()
	close(answer)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
