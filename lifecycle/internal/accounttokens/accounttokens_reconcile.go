package accounttokens

import (
	"context"
	"encoding/base64"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/worker"
)

// usernamePrefix is the username prefix of service accounts.
const usernamePrefix = "system:serviceaccount:"

// reconcileSecret fills a token secret, or deletes one whose account is gone. One that is gone is
// removed from the list of its account.
func (c *Controller) reconcileSecret(ctx context.Context, t token) (time.Duration, error) {
	name := t.secret
	secret := seen(c.seenSecrets, name)
	if secret == nil {
		return 0, c.unlist(ctx, t)
	}
	if secret.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	account, err := c.account(ctx, c.accountOf(secret), secret.GetAnnotations()[c.annotation("uid")])
	if err != nil {
		return 0, err
	}
	if account == nil {
		uid, version := secret.GetUID(), secret.GetResourceVersion()
		err := c.secrets.Namespace(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		return 0, worker.IgnoreRace(err)
	}
	filled, err := c.filled(secret, account)
	if err != nil || reflect.DeepEqual(filled.Object, secret.Object) {
		return 0, err
	}
	_, err = c.secrets.Namespace(name.Namespace).Update(ctx, filled, metav1.UpdateOptions{})
	return 0, worker.IgnoreRace(err)
}

// unlist removes a secret that is gone from the list of its account.
func (c *Controller) unlist(ctx context.Context, t token) error {
	if seen(c.seenAccounts, t.account) == nil {
		return nil
	}
	// The informer may be behind: the account may list the secret since a moment ago.
	account, err := c.accounts.Namespace(t.account.Namespace).Get(ctx, t.account.Name, metav1.GetOptions{})
	if err != nil || !slices.Contains(listed(account), t.secret.Name) {
		return worker.IgnoreRace(err)
	}
	if _, err = c.secrets.Namespace(t.secret.Namespace).Get(ctx, t.secret.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err // another one has its name
	}
	references, _, _ := unstructured.NestedSlice(account.Object, "secrets")
	references = slices.DeleteFunc(references, func(reference any) bool { return nameIn(reference) == t.secret.Name })
	if err := unstructured.SetNestedSlice(account.Object, references, "secrets"); err != nil {
		return err
	}
	_, err = c.accounts.Namespace(t.account.Namespace).Update(ctx, account, metav1.UpdateOptions{})
	return worker.IgnoreRace(err)
}

// generates reports whether every account gets a secret.
func (c *Controller) generates() bool { return c.Release.Minor() < 24 }

// account returns the account with a name and, unless it is empty, a uid; nil if the
// API confirms that there is none.
func (c *Controller) account(ctx context.Context, name cache.ObjectName, uid string) (*unstructured.Unstructured, error) {
	if name.Name == "" {
		return nil, nil
	}
	account := seen(c.seenAccounts, name)
	if account == nil || uid != "" && string(account.GetUID()) != uid {
		var err error
		account, err = c.accounts.Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if uid != "" && string(account.GetUID()) != uid {
		return nil, nil
	}
	return account, nil
}

// filled returns a token secret with all its content. An existing token is kept.
func (c *Controller) filled(secret, account *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	filled := secret.DeepCopy()
	annotations := filled.GetAnnotations()
	annotations[c.annotation("uid")] = string(account.GetUID())
	filled.SetAnnotations(annotations)
	data, _, _ := unstructured.NestedStringMap(filled.Object, "data")
	if data == nil {
		data = map[string]string{}
	}
	encode := base64.StdEncoding.EncodeToString
	if len(c.RootCertificate) > 0 {
		data[corev1.ServiceAccountRootCAKey] = encode(c.RootCertificate)
	}
	if data[corev1.ServiceAccountNamespaceKey] == "" {
		data[corev1.ServiceAccountNamespaceKey] = encode([]byte(secret.GetNamespace()))
	}
	if data[corev1.ServiceAccountTokenKey] == "" {
		token, err := c.token(secret.GetName(), account)
		if err != nil {
			return nil, err
		}
		data[corev1.ServiceAccountTokenKey] = encode([]byte(token))
	}
	return filled, unstructured.SetNestedStringMap(filled.Object, data, "data")
}

// token signs a token that is valid as long as the secret exists.
func (c *Controller) token(secret string, account *unstructured.Unstructured) (string, error) {
	claim := func(name string) string { return c.Vocabulary.Qualified("", "serviceaccount/"+name) }
	standard := jwt.Claims{Issuer: c.Vocabulary.LegacyTokenIssuer, Subject: usernamePrefix + account.GetNamespace() + ":" + account.GetName()}
	return jwt.Signed(c.signer).Claims(standard).Claims(map[string]any{
		claim("namespace"): account.GetNamespace(), claim("secret.name"): secret,
		claim("service-account.name"): account.GetName(), claim("service-account.uid"): string(account.GetUID()),
	}).Serialize()
}

// reconcileAccount creates a token secret for an account that lists none that exists, before release 1.24.
// The account keeps the names that it lists: their secrets may be created later.
func (c *Controller) reconcileAccount(ctx context.Context, name cache.ObjectName) (time.Duration, error) {
	known := seen(c.seenAccounts, name)
	if known == nil {
		return 0, c.forget(name)
	}
	if !c.generates() {
		return 0, nil
	}
	if known.GetDeletionTimestamp() != nil || slices.ContainsFunc(listed(known), func(secret string) bool { return c.seesToken(known, secret) }) {
		return 0, nil
	}
	// The informer may be behind: a secret is created only for the newest state.
	account, err := c.accounts.Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil || account.GetDeletionTimestamp() != nil {
		return 0, worker.IgnoreRace(err)
	}
	for _, secret := range listed(account) {
		if strings.HasPrefix(secret, prefix(account)) {
			_, err := c.secrets.Namespace(name.Namespace).Get(ctx, secret, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return 0, err // it exists, and will be seen
			}
		}
	}
	return 0, c.provide(ctx, account)
}

// provide creates a token secret and adds it to the account's list.
func (c *Controller) provide(ctx context.Context, account *unstructured.Unstructured) error {
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": c.secretType()}}
	secret.SetNamespace(account.GetNamespace())
	secret.SetName(prefix(account) + rand.String(suffix))
	secret.SetAnnotations(map[string]string{c.annotation("name"): account.GetName()})
	secret, err := c.filled(secret, account)
	if err != nil {
		return err
	}
	secrets := c.secrets.Namespace(account.GetNamespace())
	if secret, err = secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return worker.IgnoreRace(err)
	}
	references, _, _ := unstructured.NestedSlice(account.Object, "secrets")
	if err = unstructured.SetNestedSlice(account.Object, append(references, map[string]any{"name": secret.GetName()}), "secrets"); err == nil {
		_, err = c.accounts.Namespace(account.GetNamespace()).Update(ctx, account, metav1.UpdateOptions{})
	}
	if err != nil { // the next attempt creates another one
		_ = secrets.Delete(ctx, secret.GetName(), metav1.DeleteOptions{})
	}
	return worker.IgnoreRace(err)
}

// forget enqueues the secrets of a deleted account.
func (c *Controller) forget(account cache.ObjectName) error {
	left, err := c.seenSecrets.GetIndexer().ByIndex(ofAccount, account.String())
	for _, secret := range left {
		c.secretQueue.Add(c.tokenOf(secret.(*unstructured.Unstructured)))
	}
	return err
}

// seesToken reports whether a secret with a token of the account is known.
func (c *Controller) seesToken(account *unstructured.Unstructured, secret string) bool {
	found := seen(c.seenSecrets, cache.ObjectName{Namespace: account.GetNamespace(), Name: secret})
	return found != nil && found.GetDeletionTimestamp() == nil && c.accountOf(found) == nameOf(account)
}

// listed returns the names of the secrets that an account lists.
func listed(account *unstructured.Unstructured) (names []string) {
	references, _, _ := unstructured.NestedSlice(account.Object, "secrets")
	for _, reference := range references {
		names = append(names, nameIn(reference))
	}
	return names
}

func nameIn(reference any) string {
	object, _ := reference.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

const (
	// suffix is the length of the random suffix of a generated secret's name.
	suffix = 5
	// maxNameLength is the maximum length of a secret's name.
	maxNameLength = 253
)

// prefix is the name prefix of the secrets generated for an account.
func prefix(account *unstructured.Unstructured) string {
	const middle = "-token-"
	name := account.GetName()
	return name[:min(len(name), maxNameLength-len(middle)-suffix)] + middle
}
