package strain

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/webhook"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// hostile returns the trials with texts that take many times their size once they are decoded, of clients and of
// peers.
func hostile() []attack.Trial {
	return []attack.Trial{
		{Name: "HeavySelectors", Finding: "N1, N2, N4, M1", Run: heavySelectors},
		{Name: "HeavyHeaders", Finding: "N4", Run: heavyHeaders},
		{Name: "UnreadDocuments", Finding: "H2", Run: unreadDocuments},
		{Name: "HeavyWebhooks", Finding: "H5, M2", Run: heavyWebhooks},
		{Name: "LoopingWebhook", Finding: "H5", Run: loopingWebhook},
		{Name: "HeavyAdmissionService", Finding: "A1", Run: heavyAdmissionService},
		{Name: "HeavyExtension", Finding: "H1", Run: heavyExtension},
	}
}

// modest is what the processes may grow by in a trial, in bytes.
const modest = 400 << 20

// at runs a function n times at once.
func at(ctx context.Context, n int, f func(ctx context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for range n {
		group.Go(func() error { return f(ctx) })
	}
	return group.Wait()
}

// heavySelectors sends selectors of hundreds of thousands of terms, in reviews, lists and watches: by a user without any
// right, and by nobody.
func heavySelectors(ctx context.Context, t *attack.Target) error {
	user, err := t.User(ctx, "")
	if err != nil {
		return err
	}
	reader, err := t.User(ctx, attack.Rule("get,list,watch", "", "configmaps"))
	if err != nil {
		return err
	}
	group := t.Admin.Vocabulary.Group("authorization.")
	review := func(selector string) cluster.Request {
		return attack.Request(http.MethodPost, "/apis/"+group+"/v1/selfsubjectaccessreviews",
			fmt.Sprintf(`{"apiVersion":%q,"kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"list","resource":"pods",%s}}}`, group+"/v1", selector))
	}
	long := url.QueryEscape(strings.Repeat("a=b,", 60_000) + "a=b")
	short := url.QueryEscape(strings.Repeat("a!=b,", 9_000) + "a!=b")
	return attack.Modest(t, modest, func() error {
		return at(ctx, attack.Count(t, 4, 20), func(ctx context.Context) error {
			for _, selector := range []string{
				`"labelSelector":{"rawSelector":"` + strings.Repeat("a,", 1_400_000) + `a"}`, `"fieldSelector":{"rawSelector":"` + strings.Repeat("a=b,", 700_000) + `a=b"}`,
				`"labelSelector":{"requirements":[` + strings.Repeat("{},", 400_000) + `{}]}`, `"fieldSelector":{"requirements":[` + strings.Repeat("{},", 240_000) + `{}]}`,
			} {
				// Reviews have selectors from 1.31 on; before, they are unknown fields.
				if err := attack.Expect(ctx, user.Actor, review(selector), 200, 201, 413, 422, 429); err != nil {
					return err
				}
			}
			for _, parameter := range []string{"fieldSelector=" + long, "labelSelector=" + long, strings.Repeat("a&", 300_000)} {
				if err := attack.Expect(ctx, t.As(""), cluster.Request{Path: "/api/v1/pods?" + parameter}, 413); err != nil {
					return err
				}
			}
			for range attack.Count(t, 1, 10) {
				watch := cluster.Request{Path: attack.ConfigMaps("default") + "?watch=1&timeoutSeconds=1&labelSelector=" + short}
				if err := attack.Expect(ctx, reader.Actor, watch, 200, 429); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// heavyHeaders sends long lists in headers, and long paths, without credentials.
func heavyHeaders(ctx context.Context, t *attack.Target) error {
	return attack.Modest(t, modest, func() error {
		return at(ctx, attack.Count(t, 10, 60), func(ctx context.Context) error {
			for _, r := range []cluster.Request{
				{Path: "/api/v1/pods", Header: http.Header{"Accept": {strings.Repeat("a/b,", 240_000)}}},
				{Path: "/openapi/v2", Header: http.Header{"Accept-Encoding": {strings.Repeat("a,", 480_000)}}},
				{Path: "/apis", Header: http.Header{"Accept": {"a/b" + strings.Repeat(";a=b", 230_000)}}},
				{Path: "/api/v1/pods", Header: http.Header{"X-Forwarded-For": {strings.Repeat("1.1.1.1,", 120_000)}}},
				{Path: "/api/v1" + strings.Repeat("/a", 450_000)},
				{Path: "/api/v1/pods?" + strings.Repeat("a&", 450_000)},
			} {
				if err := attack.Expect(ctx, t.As(""), r, 401, 403, 404, 413); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// unreadDocuments requests large documents and reads nothing, as a user without any right.
func unreadDocuments(ctx context.Context, t *attack.Target) error {
	user, err := t.User(ctx, "")
	if err != nil {
		return err
	}
	server := attack.Server(t)
	return attack.Modest(t, 2*modest, func() error {
		var open []io.Closer
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		for range attack.Count(t, 10, 100) {
			c, err := server.HTTP2(ctx, 0)
			if err != nil {
				return err
			}
			open = append(open, c)
			for _, path := range []string{"/openapi/v2", "/openapi/v2?pretty=true", "/apis?pretty=true"} {
				for range attack.Count(t, 10, 33) {
					if _, err := c.Get(path, user.Token); err != nil {
						return err
					}
				}
			}
		}
		return attack.Promptly(ctx, 5*time.Second, "an administrator's request meanwhile", func(ctx context.Context) error {
			return attack.Expect(ctx, t.Root(), cluster.Request{Path: "/api/v1/namespaces/default"}, 200)
		})
	})
}

// heavyWebhooks answers with what takes many times its size, compressed too.
func heavyWebhooks(ctx context.Context, t *attack.Target) error {
	causes := `,"status":{"details":{"causes":[` + strings.Repeat("{},", 2_500_000) + `{}]}}`
	notes := `,"auditAnnotations":{` + Wide(400_000, `"k%d":"v"`) + `}`
	for what, b := range map[string]webhook.Behaviour{
		"causes": webhook.Answer(causes), "zipped causes": webhook.Zipped(webhook.Answer(causes)), "annotations": webhook.Answer(notes),
		"a long annotation": webhook.Answer(`,"auditAnnotations":{"a":"` + strings.Repeat("a", 7<<20) + `"}`),
		"a wide patch":      webhook.Patch(`[{"op":"add","path":"/data","value":{"a":[` + strings.Repeat("{},", 900_000) + `{}]}}]`),
	} {
		err := attack.Modest(t, modest, func() error {
			h, err := hook(ctx, t, b)
			if err != nil {
				return err
			}
			defer h.end()
			return at(ctx, attack.Count(t, 3, 12), func(ctx context.Context) error {
				answer, err := h.create(ctx, attack.Unique("heavy"))
				if err == nil && answer.Code/100 == 2 && what != "a long annotation" {
					err = attack.ErrAccepted
				}
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// loopingWebhook writes to the API for each review, and so calls itself.
func loopingWebhook(ctx context.Context, t *attack.Target) error {
	return attack.Modest(t, 2*modest, func() error {
		var own atomic.Pointer[hookedNamespace]
		h, err := hook(ctx, t, func(w http.ResponseWriter, r *http.Request, review webhook.Review) {
			if h := own.Load(); h != nil {
				_, _ = h.create(r.Context(), attack.Unique("loop"))
			}
			webhook.Answer("")(w, r, review)
		})
		if err != nil {
			return err
		}
		defer h.end()
		own.Store(h)
		return attack.Promptly(ctx, 60*time.Second, "a webhook that calls itself", func(ctx context.Context) error {
			_, err := h.create(ctx, "first")
			return err
		})
	})
}
