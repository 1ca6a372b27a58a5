package contract_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/revocation"
	"github.com/portico-platform/portico/services/vocabulary"
)

// ledger is a store with one quota. Its other methods return empty results.
type ledger struct {
	services.Store
	services.WatchHub
	services.Authn
	services.Authz
	services.Admission
	updated *services.UpdateRequest
}

const storedQuota = `{"metadata":{"name":"q","resourceVersion":"7"},"spec":{"hard":{"pods":"3"}},"status":{"hard":{"pods":"3"},"used":{"pods":"1"}}}`

func (*ledger) Get(_ context.Context, r services.GetRequest) (services.Object, error) {
	return services.Object{Key: r.Key, Revision: 7, UID: "uid", JSON: []byte(storedQuota), Labels: map[string]string{"a": "b"}}, nil
}

func (*ledger) List(context.Context, services.ListRequest) (services.Page, error) {
	return services.Page{Revision: 7}, nil
}
func (*ledger) Revision(context.Context, resource.GroupResource) (int64, error) { return 7, nil }
func (*ledger) Create(_ context.Context, r services.CreateRequest) (services.Object, error) {
	return services.Object{Key: r.Key}, nil
}

func (l *ledger) Update(_ context.Context, r services.UpdateRequest) (services.Object, error) {
	l.updated = &r
	return services.Object{Key: r.Key}, nil
}

func (*ledger) Delete(_ context.Context, r services.DeleteRequest) (services.Object, error) {
	return services.Object{Key: r.Key}, nil
}

func (*ledger) Replay(context.Context, services.ReplayRequest) (services.Replay, error) {
	return services.Replay{}, nil
}

func (*ledger) Keys(context.Context, services.KeysRequest) (services.Keys, error) {
	return services.Keys{}, nil
}

func (*ledger) Authenticate(context.Context, services.Credentials) (services.Authentication, error) {
	return services.Authentication{User: services.UserInfo{Name: "jane"}}, nil
}

func (*ledger) Authorize(context.Context, services.Attributes) (services.Decision, error) {
	return services.Decision{}, nil
}

func (*ledger) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	return services.Rules{}, nil
}

func (*ledger) Mutate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{}, nil
}

func (*ledger) Validate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{}, nil
}

func (*ledger) Refund(context.Context, []byte) error { return nil }

// contracts holds clients of all contracts.
type contracts struct {
	store     services.Store
	hub       services.WatchHub
	authn     services.Authn
	authz     services.Authz
	admission services.Admission
}

// site is a process that offers all contracts, with the CA of its peers.
type site struct {
	t         *testing.T
	authority *peertls.Authority
	address   string
	flags     []string
}

func newSite(t *testing.T, l *ledger, flags ...string) *site {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, authority: authority, flags: flags}
	offers := []run.Dependency{contract.Store, contract.WatchHub, contract.Authn, contract.Authz, contract.Admission}
	running := s.start([]string{"store", "watch-hub", "authn", "authz", "admission"}, run.Service{
		Name: "all", Offers: offers, Start: func(_ context.Context, n *run.Node) error {
			contract.Store.Offer(n, l)
			contract.WatchHub.Offer(n, l)
			contract.Authn.Offer(n, l)
			contract.Authz.Offer(n, l)
			contract.Admission.Offer(n, l)
			return nil
		},
	}, "--rpc-address=127.0.0.1:0")
	s.address = running.RPCAddress()
	return s
}

func (s *site) start(names []string, service run.Service, args ...string) *run.Running {
	s.t.Helper()
	files, err := s.authority.Issue(s.t.TempDir(), names...)
	if err != nil {
		s.t.Fatal(err)
	}
	args = append(append(append(args, "--log-level=error"), files.Flags()...), s.flags...)
	running, err := run.Start(s.t.Context(), run.App{Name: "test", Services: []run.Service{service}}, args)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(running.Stop)
	return running
}

// as returns clients in a process whose certificate has these names.
func (s *site) as(names ...string) (c contracts) {
	s.t.Helper()
	var args []string
	for _, peer := range []string{"store", "watch-hub", "authn", "authz", "admission"} {
		args = append(args, "--"+peer+"-address="+s.address)
	}
	s.start(names, run.Service{
		Name: "user", Needs: []run.Dependency{contract.Store, contract.WatchHub, contract.Authn, contract.Authz, contract.Admission},
		Start: func(ctx context.Context, n *run.Node) (err error) {
			if c.store, err = contract.Store.Use(ctx, n); err != nil {
				return err
			}
			if c.hub, err = contract.WatchHub.Use(ctx, n); err != nil {
				return err
			}
			if c.authn, err = contract.Authn.Use(ctx, n); err != nil {
				return err
			}
			if c.authz, err = contract.Authz.Use(ctx, n); err != nil {
				return err
			}
			c.admission, err = contract.Admission.Use(ctx, n)
			return err
		},
	}, args...)
	return c
}

// calls returns calls of all methods; those with a resource type use gr.
func (c contracts) calls(gr resource.GroupResource) map[string]func(context.Context) error {
	key := resource.Key{GroupResource: gr, Namespace: "ns", Name: "q"}
	content := services.Content{JSON: []byte(storedQuota), UID: "uid", Labels: map[string]string{"a": "b"}}
	return map[string]func(context.Context) error{
		"Get": func(ctx context.Context) error { _, err := c.store.Get(ctx, services.GetRequest{Key: key}); return err },
		"List": func(ctx context.Context) error {
			_, err := c.store.List(ctx, services.ListRequest{GroupResource: gr})
			return err
		},
		"Create": func(ctx context.Context) error {
			_, err := c.store.Create(ctx, services.CreateRequest{Key: key, Content: content})
			return err
		},
		"Update": func(ctx context.Context) error {
			_, err := c.store.Update(ctx, services.UpdateRequest{Key: key, Revision: 7, Content: content})
			return err
		},
		"Delete": func(ctx context.Context) error {
			_, err := c.store.Delete(ctx, services.DeleteRequest{Key: key})
			return err
		},
		"Replay": func(ctx context.Context) error {
			_, err := c.hub.Replay(ctx, services.ReplayRequest{GroupResource: gr})
			return err
		},
		"Keys": func(ctx context.Context) error {
			_, err := c.hub.Keys(ctx, services.KeysRequest{GroupResource: gr})
			return err
		},

		"Revision": func(ctx context.Context) error { _, err := c.store.Revision(ctx, resource.GroupResource{}); return err },
		"Authenticate": func(ctx context.Context) error {
			_, err := c.authn.Authenticate(ctx, services.Credentials{})
			return err
		},
		"Authorize": func(ctx context.Context) error { _, err := c.authz.Authorize(ctx, services.Attributes{}); return err },
		"Rules":     func(ctx context.Context) error { _, err := c.authz.Rules(ctx, services.RulesRequest{}); return err },
		"Mutate": func(ctx context.Context) error {
			_, err := c.admission.Mutate(ctx, services.AdmissionRequest{})
			return err
		},
		"Validate": func(ctx context.Context) error {
			_, err := c.admission.Validate(ctx, services.AdmissionRequest{})
			return err
		},
		"Refund": func(ctx context.Context) error { return c.admission.(services.AdmissionRefunds).Refund(ctx, nil) },
	}
}

// allowed is the expected table, written independently of services.Callers. A word is a
// method, or method:resource for methods with a resource type.
var allowed = map[string]string{
	"authn": "Revision Get:secrets Get:serviceaccounts Get:pods List:revocations",
	"authz": "Revision Get:roles List:roles Replay:roles Keys:roles Get:clusterrolebindings List:clusterrolebindings Replay:clusterrolebindings Keys:clusterrolebindings " +
		"Get:pods List:pods Replay:pods Keys:pods",
	"admission": "Revision Authorize Rules Get:configmaps List:configmaps Get:pods List:pods Get:services List:services Get:roles List:roles " +
		"Get:namespaces List:namespaces Create:namespaces Replay:namespaces Keys:namespaces Get:storageclasses List:storageclasses Replay:storageclasses Keys:storageclasses " +
		"Get:serviceaccounts List:serviceaccounts Replay:serviceaccounts Keys:serviceaccounts " +
		"Get:resourcequotas List:resourcequotas Replay:resourcequotas Keys:resourcequotas Update:resourcequotas",
	"store": "", "watch-hub": "", "csr-signer": "", "token-cleaner": "", "lifecycle": "", "nobody": "",
}

// TestEveryServiceIsHeldToItsTypes calls every method for many types with the certificate
// of every service.
func TestEveryServiceIsHeldToItsTypes(t *testing.T) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		t.Run(v.Name, func(t *testing.T) {
			site := newSite(t, &ledger{}, "--vocabulary="+v.Name)
			rbac := v.Group("rbac.authorization.")
			types := []resource.GroupResource{
				{Resource: "secrets"}, {Resource: "pods"}, {Resource: "services"}, {Resource: "namespaces"}, {Resource: "serviceaccounts"},
				{Resource: "resourcequotas"}, {Resource: "configmaps"}, {Group: rbac, Resource: "roles"}, {Group: rbac, Resource: "clusterrolebindings"},
				{Group: v.Group("storage."), Resource: "storageclasses"},
				{Group: revocation.Group, Resource: revocation.Resource},
				// Similar to types that some services may read.
				{Group: "portico", Resource: "sealing-keys"}, {Group: "core", Resource: "secrets"}, {Group: "rbac.authorization.", Resource: "roles"},
				{Group: "evil.example", Resource: "roles"}, {Group: "evil.example", Resource: "resourcequotas"}, {Resource: ""},
			}
			for service, words := range allowed {
				check(t, site.as(service), service, types, func(method string, gr resource.GroupResource) bool {
					word := method + ":" + gr.Resource
					near := gr.Group != "" && gr.Group != rbac && gr.Group != v.Group("storage.") && gr.Group != revocation.Group
					return !near && slices.Contains(strings.Fields(words), word)
				}, strings.Fields(words))
			}
			check(t, site.as("frontdoor"), "frontdoor", types, func(string, resource.GroupResource) bool { return true },
				[]string{"Revision", "Authenticate", "Authorize", "Rules", "Mutate", "Validate", "Refund"})
		})
	}
}

func check(t *testing.T, c contracts, service string, types []resource.GroupResource, may func(string, resource.GroupResource) bool, plain []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	typed := []string{"Get", "List", "Create", "Update", "Delete", "Replay", "Keys"}
	for i, gr := range types {
		for method, call := range c.calls(gr) {
			want := slices.Contains(plain, method)
			if slices.Contains(typed, method) {
				want = may(method, gr)
			} else if i > 0 {
				continue
			}
			err := call(ctx)
			if refused := err != nil && strings.Contains(err.Error(), "may not call"); err != nil && !refused || refused == want {
				t.Errorf("%s calls %s for %q: %v, want allowed: %v", service, method, gr, err, want)
			}
		}
	}
}

// TestAdmissionReadsCustomTypes: the parameters of policies are objects of custom types, which
// admission may read, and only read, whatever their names are.
func TestAdmissionReadsCustomTypes(t *testing.T) {
	site := newSite(t, &ledger{})
	for service, words := range map[string]string{"admission": "Get List", "authn": "", "authz": "", "frontdoor": "Get List Create Update Delete Replay Keys"} {
		for method, call := range site.as(service).calls(resource.GroupResource{Resource: "secrets", Custom: true}) {
			if method == "Revision" || !slices.Contains([]string{"Get", "List", "Create", "Update", "Delete", "Replay", "Keys"}, method) {
				continue
			}
			err := call(t.Context())
			if refused := err != nil && strings.Contains(err.Error(), "may not call"); refused == slices.Contains(strings.Fields(words), method) {
				t.Errorf("%s calls %s of a custom type: %v", service, method, err)
			}
		}
	}
}

// TestSeveralNamesInOneCertificate: a process of several services has the permissions of
// each of them, and no others.
func TestSeveralNamesInOneCertificate(t *testing.T) {
	both := newSite(t, &ledger{}).as("authn", "authz")
	for resourceType, want := range map[resource.GroupResource]bool{
		{Resource: "secrets"}: true, {Group: vocabulary.Platform().Group("rbac.authorization."), Resource: "roles"}: true, {Resource: "configmaps"}: false,
	} {
		if err := both.calls(resourceType)["Get"](t.Context()); (err == nil) != want {
			t.Errorf("%s: %v", resourceType, err)
		}
	}
}

// TestAdmissionChangesOnlyWhatIsInUse: admission may update status.used of a quota, and
// nothing else.
func TestAdmissionChangesOnlyWhatIsInUse(t *testing.T) {
	l := &ledger{}
	site := newSite(t, l)
	update := func(c contracts, revision int64, content services.Content) error {
		l.updated = nil
		_, err := c.store.Update(t.Context(), services.UpdateRequest{Revision: revision, Content: content,
			Key: resource.Key{GroupResource: resource.GroupResource{Resource: "resourcequotas"}, Namespace: "ns", Name: "q"}})
		return err
	}
	labels := map[string]string{"a": "b"}
	quota := func(metadata, spec, status string) services.Content {
		return services.Content{UID: "uid", Labels: labels,
			JSON: fmt.Appendf(nil, `{"metadata":{"name":"q"%s},"spec":{"hard":{"pods":"3"}%s},"status":{"hard":{"pods":"3"},%s}}`, metadata, spec, status)}
	}
	used := `"used":{"pods":"2"}`
	admission := site.as("admission")
	if err := update(admission, 7, quota("", "", used)); err != nil || l.updated == nil || !strings.Contains(string(l.updated.Content.JSON), used) {
		t.Errorf("charging: %v, %+v", err, l.updated)
	}
	if err := update(admission, 6, quota("", "", used)); !services.IsReason(err, services.ReasonConflict) {
		t.Errorf("an old revision: %v", err)
	}
	other := quota("", "", used)
	other.Labels = map[string]string{"a": "c"}
	otherQuota := quota("", "", used)
	otherQuota.UID = "another"
	for what, content := range map[string]services.Content{
		"metadata":     quota(`,"annotations":{"a":"b"}`, "", used),
		"spec":         quota("", `,"scopes":["BestEffort"]`, used),
		"other status": quota("", "", `"hard":{"pods":"9"},`+used),
		"labels":       other, "uid": otherQuota,
		"spec, given twice": {UID: "uid", Labels: labels, JSON: []byte(`{"spec":{"hard":{"pods":"3"}},"metadata":{"name":"q"},"status":{"hard":{"pods":"3"},"used":{}},"spec":{"hard":{"pods":"9"}}}`)},
	} {
		if err := update(admission, 7, content); !services.IsReason(err, services.ReasonForbidden) || l.updated != nil {
			t.Errorf("admission changes %s: %v", what, err)
		}
	}
	twice := services.Content{UID: "uid", Labels: labels,
		JSON: []byte(`{"spec":{"hard":{"pods":"9"}},"metadata":{"name":"q"},"status":{"hard":{"pods":"3"},"used":{}},"spec":{"hard":{"pods":"3"}}}`)}
	if err := update(admission, 7, twice); err != nil || strings.Contains(string(l.updated.Content.JSON), "9") {
		t.Errorf("a member that is given twice: %v, %+v", err, l.updated)
	}
	if err := update(site.as("frontdoor"), 7, other); err != nil {
		t.Errorf("the front door: %v", err)
	}
}
