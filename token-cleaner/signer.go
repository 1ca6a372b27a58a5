package tokencleaner

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/services/kit/worker"
)

const (
	// clusterInfo is the ConfigMap that new nodes read before they have credentials.
	clusterInfo = "cluster-info"
	// payload is the signed entry, and signatures the prefix of the entries with its
	// signatures.
	payload, signatures = "kubeconfig", "jws-kubeconfig-"
)

// signer signs cluster-info with every bootstrap token for signing: a token's holder
// can verify the content by its signature.
type signer struct {
	configMaps dynamic.ResourceInterface
	// info watches cluster-info, tokens the Secrets of the tokens.
	info, tokens cache.SharedIndexInformer
	// fullToken signs with the whole token, not its secret part.
	fullToken bool
	queue     *worker.Queue[string] // of clusterInfo alone
	clock     clock.PassiveClock
	log       *slog.Logger
}

// run runs the signer until ctx ends.
func (s *signer) run(ctx context.Context) error {
	always := func(*unstructured.Unstructured) string { return clusterInfo }
	for _, informer := range []cache.SharedIndexInformer{s.info, s.tokens} {
		if err := s.queue.Follow(informer, always); err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
	}
	if cache.WaitForCacheSync(ctx.Done(), s.info.HasSynced, s.tokens.HasSynced) {
		s.queue.Run(ctx, 1, s.reconcile)
	}
	return nil
}

// reconcile updates the signatures, and returns the time until the next token expires.
func (s *signer) reconcile(ctx context.Context, _ string) (time.Duration, error) {
	found := s.info.GetStore().List() // at most one: the informer selects it by name
	if len(found) == 0 {
		return 0, nil
	}
	return s.sign(ctx, found[0].(*unstructured.Unstructured).DeepCopy())
}

func (s *signer) sign(ctx context.Context, info *unstructured.Unstructured) (time.Duration, error) {
	before, _, _ := unstructured.NestedStringMap(info.Object, "data")
	after := maps.Clone(before)
	maps.DeleteFunc(after, func(entry, _ string) bool { return strings.HasPrefix(entry, signatures) })
	var wait time.Duration
	if content, ok := after[payload]; ok {
		var err error
		for _, t := range s.valid() {
			if after[signatures+t.id], err = detached(content, t.id, s.key(t)); err != nil {
				return 0, err
			}
			if t.left > 0 && (wait == 0 || t.left < wait) {
				wait = t.left
			}
		}
	}
	if maps.Equal(before, after) {
		return wait, nil
	}
	if err := unstructured.SetNestedStringMap(info.Object, after, "data"); err != nil {
		return 0, err
	}
	_, err := s.configMaps.Update(ctx, info, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err):
		return 0, worker.ErrLater
	case apierrors.IsNotFound(err):
		return 0, nil
	case err == nil:
		s.log.Info("signed cluster-info")
	}
	return wait, err
}

// token is a bootstrap token that may sign.
type token struct {
	id, secret string
	left       time.Duration // until it expires; 0: never
}

var (
	tokenID     = regexp.MustCompile(`^[a-z0-9]{6}$`)
	tokenSecret = regexp.MustCompile(`^[a-z0-9]{16}$`)
)

// valid returns the tokens that sign now.
func (s *signer) valid() (all []token) {
	for _, secret := range s.tokens.GetStore().List() {
		if t, ok := s.token(secret.(*unstructured.Unstructured)); ok {
			all = append(all, t)
		}
	}
	return all
}

// token returns the token of a secret; false if it is incomplete, expired, or not for
// signing. The original names sign with a secret of any length, as the controller of Kubernetes does.
func (s *signer) token(secret *unstructured.Unstructured) (token, bool) {
	t := token{id: text(secret, "token-id"), secret: text(secret, "token-secret")}
	if secret.GetDeletionTimestamp() != nil || text(secret, "usage-bootstrap-signing") != "true" || secret.GetName() != "bootstrap-token-"+t.id ||
		!tokenID.MatchString(t.id) || t.secret == "" || s.fullToken && !tokenSecret.MatchString(t.secret) {
		return t, false
	}
	if text(secret, "expiration") == "" {
		return t, true
	}
	expires, ok := expiration(secret)
	t.left = expires.Sub(s.clock.Now())
	return t, ok && t.left > 0
}

// key returns the signing key of a token.
func (s *signer) key(t token) string {
	if s.fullToken {
		return t.id + "." + t.secret
	}
	return t.secret
}

// detached returns a JWS (RFC 7515, HS256) without its payload. Libraries reject keys that
// are shorter than the hash, as tokens are.
func detached(content, id, key string) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "HS256", "kid": id})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	head := encode(header)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(head + "." + encode([]byte(content))))
	return head + ".." + encode(mac.Sum(nil)), nil
}

// text returns an entry of a secret; empty if it cannot be decoded.
func text(secret *unstructured.Unstructured, entry string) string {
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", entry)
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}
	return string(decoded)
}
