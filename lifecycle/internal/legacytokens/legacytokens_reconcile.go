package legacytokens

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/references"
	"github.com/portico-platform/portico/services/tree"
)

// search adds the namespaces with unused tokens to the queue.
func (c *Controller) search(ctx context.Context) error {
	tracked, err := c.tracked(ctx)
	if err != nil || !tracked {
		return err
	}
	return each(ctx, c.secrets, c.selectTokens(), func(secret *unstructured.Unstructured) {
		if c.unused(secret) {
			c.queue.Add(secret.GetNamespace())
		}
	})
}

// tracked reports whether uses have been recorded for long enough. Without a record of the first
// day, nothing is known about the uses of any token.
func (c *Controller) tracked(ctx context.Context) (bool, error) {
	record, err := c.configMaps.Namespace(c.Vocabulary.Namespace("system")).Get(ctx, c.Vocabulary.TokenTracking(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		c.Log.Debug("no token is deleted: uses of tokens are not recorded yet")
		return false, nil
	}
	if err != nil {
		return false, err
	}
	since := tree.Text(record.Object, "data", "since")
	over, err := c.over(since)
	if err != nil {
		c.Log.Warn("no token is deleted: the ConfigMap has no date since which uses are recorded", "configmap", record.GetName(), "since", since)
		return false, nil
	}
	return over, nil
}

// over reports whether the whole day of a date was so long ago that what was not used since then
// is unused.
func (c *Controller) over(date string) (bool, error) {
	at, err := time.Parse(time.DateOnly, date)
	return err == nil && !c.Clock.Now().Before(at.Add(day+c.Unused)), err
}

// unused reports whether a token has not been used for long enough. One with an unreadable date
// counts as used.
func (c *Controller) unused(secret *unstructured.Unstructured) bool {
	if secret.GetDeletionTimestamp() != nil || !secret.GetCreationTimestamp().Time.Before(c.Clock.Now().Add(-c.Unused)) {
		return false
	}
	last, used := secret.GetLabels()[c.Vocabulary.TokenLastUsed()]
	over, err := c.over(last)
	if used && err != nil {
		c.Log.Warn("a token is not deleted: its last use is not a date", "namespace", secret.GetNamespace(), "secret", secret.GetName(), "date", last)
	}
	return !used || over
}

// clean marks and deletes the unused tokens of a namespace. Those that were changed meanwhile are
// looked at again. Others that cannot be written wait for the next search.
func (c *Controller) clean(ctx context.Context, namespace string) error {
	unused, err := c.listed(ctx, namespace)
	if err != nil || len(unused) == 0 {
		return err
	}
	named, err := c.named(ctx, namespace)
	if err != nil {
		return err
	}
	var later error
	for _, secret := range unused {
		if named[secret.GetName()] {
			continue
		}
		switch err := worker.IgnoreRace(c.end(ctx, secret)); {
		case errors.Is(err, worker.ErrLater):
			later = err
		case err != nil && ctx.Err() == nil:
			c.Log.Warn("an unused token cannot be marked or deleted", "namespace", namespace, "secret", secret.GetName(), "error", err)
		}
	}
	return later
}

// listed returns the unused token Secrets of a namespace that their account lists.
func (c *Controller) listed(ctx context.Context, namespace string) (found []*unstructured.Unstructured, err error) {
	if err := each(ctx, c.secrets.Namespace(namespace), c.selectTokens(), func(secret *unstructured.Unstructured) {
		if c.unused(secret) {
			found = append(found, secret)
		}
	}); err != nil {
		return nil, err
	}
	accounts := map[string]*unstructured.Unstructured{}
	for _, secret := range found {
		name := c.account(secret, "name")
		if _, known := accounts[name]; known || name == "" {
			continue
		}
		accounts[name], err = c.accounts.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return slices.DeleteFunc(found, func(secret *unstructured.Unstructured) bool {
		account, uid := accounts[c.account(secret, "name")], c.account(secret, "uid")
		return account == nil || uid != "" && uid != string(account.GetUID()) ||
			!slices.ContainsFunc(tree.Objects(account.Object, "secrets"), func(o map[string]any) bool { return o["name"] == secret.GetName() })
	}), nil
}

// account returns the name or uid of the account of a token Secret.
func (c *Controller) account(secret *unstructured.Unstructured, of string) string {
	return secret.GetAnnotations()[c.Vocabulary.Qualified("", "service-account."+of)]
}

// named returns the Secrets that the pods of a namespace name, also of those that have finished.
func (c *Controller) named(ctx context.Context, namespace string) (map[string]bool, error) {
	names := map[string]bool{}
	err := each(ctx, c.pods.Namespace(namespace), "", func(pod *unstructured.Unstructured) {
		for _, used := range references.OfPod(tree.Child(pod.Object, "spec")) {
			if used.Resource == references.Secrets {
				names[used.Name] = true
			}
		}
	})
	return names, err
}

// end marks an unused token as invalid, or deletes its Secret if that was long ago. The state of
// the Secret is a condition of both: its use may have been recorded since it was read.
func (c *Controller) end(ctx context.Context, secret *unstructured.Unstructured) error {
	secrets, name, log := c.secrets.Namespace(secret.GetNamespace()), secret.GetName(), c.Log.With("namespace", secret.GetNamespace(), "secret", secret.GetName())
	uid, version := secret.GetUID(), secret.GetResourceVersion()
	label := c.Vocabulary.TokenInvalidSince()
	over, err := c.over(secret.GetLabels()[label])
	switch {
	case err != nil:
		today := c.Clock.Now().UTC().Format(time.DateOnly)
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "resourceVersion": version, "labels": map[string]any{label: today}}})
		if err != nil {
			return err
		}
		if _, err := secrets.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
		log.Info("marked an unused service account token as invalid")
	case over:
		err := secrets.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		if err != nil {
			return err
		}
		log.Info("deleted the Secret of an unused service account token")
	}
	return nil
}

// selectTokens returns the field selector of token Secrets.
func (c *Controller) selectTokens() string {
	return "type=" + c.Vocabulary.Qualified("", "service-account-token")
}

// each calls a function with every object of a list, which is read in pages.
func each(ctx context.Context, client dynamic.ResourceInterface, fields string, visit func(*unstructured.Unstructured)) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	})
	pages.PageBufferSize = 0
	return pages.EachListItemWithAlloc(ctx, metav1.ListOptions{FieldSelector: fields}, func(object runtime.Object) error {
		visit(object.(*unstructured.Unstructured))
		return nil
	})
}
