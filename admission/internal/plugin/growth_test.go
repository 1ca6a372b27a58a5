package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/admission/internal/limits"
	"github.com/portico-platform/portico/admission/internal/namespaces"
	"github.com/portico-platform/portico/admission/internal/podsecurity"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/admission/internal/serviceaccount"
	"github.com/portico-platform/portico/admission/internal/usage"
	"github.com/portico-platform/portico/admission/internal/webhook"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest/growth"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
	webhooks "github.com/portico-platform/portico/services/webhook"
)

// held is a collection that returns the same elements for every namespace.
type held[T any] map[string]T

func (h held[T]) Get(_, name string) (T, bool) {
	value, ok := h[name]
	return value, ok
}

func (h held[T]) Await(_ context.Context, namespace, name string) (T, bool) {
	return h.Get(namespace, name)
}

func (h held[T]) Unreadable(string) error { return nil }

func (h held[T]) List(string) (all []T) {
	for _, value := range h {
		all = append(all, value)
	}
	return all
}

// texts joins n copies of a text, with # replaced by the index.
func texts(n int, of string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(of, "#", fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// parsed returns n stored objects made from a template, with # replaced by the index.
func parsed[T any](t *testing.T, n int, parse func(services.Object) (T, error), of string) held[T] {
	t.Helper()
	all := held[T]{}
	for i := range n {
		name := fmt.Sprint("x", i)
		if n == 1 {
			name = "x"
		}
		value, err := parse(services.Object{Key: resource.Key{Name: name}, JSON: []byte(strings.ReplaceAll(of, "#", fmt.Sprint(i)))})
		if err != nil {
			t.Fatal(err)
		}
		all[name] = value
	}
	return all
}

// anything is an authorizer that allows everything except escalate and bind.
type anything struct{ rules services.Rules }

func (anything) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	return services.Decision{Allowed: a.Verb != "escalate" && a.Verb != "bind"}, nil
}

func (a anything) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	return a.rules, nil
}

// byName is a store with one object of each resource type.
type byName struct {
	services.Store
	objects map[string]string
}

func (s byName) Get(_ context.Context, r services.GetRequest) (services.Object, error) {
	o, ok := s.objects[r.Key.Resource]
	if !ok {
		return services.Object{}, services.NotFound(r.Key.Group, r.Key.Resource, r.Key.Name)
	}
	return services.Object{Key: r.Key, Revision: 1, JSON: []byte(o)}, nil
}

func (s byName) List(_ context.Context, r services.ListRequest) (services.Page, error) {
	o, err := s.Get(context.Background(), services.GetRequest{Key: resource.Key{GroupResource: r.GroupResource, Name: "x"}})
	return services.Page{Objects: []services.Object{o}}, err
}

func (s byName) Update(_ context.Context, r services.UpdateRequest) (services.Object, error) {
	return services.Object{Key: r.Key, JSON: r.Content.JSON, Revision: 2}, nil
}

// grown is a request with one list or map of variable size: of the object, or of the
// objects that the plugins read.
type grown struct {
	group, resource, object, old string
	// environment changes the objects that the plugins read.
	environment func(e *Environment)
}

const enforcing = `{"metadata":{"annotations":{"platform.io/enforce-mountable-secrets":"true"}},"secrets":[%s],"imagePullSecrets":[%s]}`

const rangeItem = `{"type":"Container","max":{"cpu":"1"},"min":{"cpu":"1m"},"default":{"cpu":"500m"},"defaultRequest":{"cpu":"100m"}},{"type":"Pod","max":{"cpu":"100000"}}`

const quotaObject = `{"metadata":{"name":"x#"},"spec":{"hard":{"pods":"9","requests.cpu":"1000000","cpu":"1000000"},"scopes":["NotBestEffort","NotTerminating"]},` +
	`"status":{"hard":{"pods":"9","requests.cpu":"1000000","cpu":"1000000"},"used":{"pods":"0","requests.cpu":"0","cpu":"0"}}}`

// grownPods are new pods with n items in one of their lists or maps, some with n items in
// the stored objects too.
func grownPods(t *testing.T, n int) map[string]grown {
	pod := func(spec string) grown {
		return grown{resource: "pods", object: `{"metadata":{"name":"x"},"spec":{"serviceAccountName":"x","runtimeClassName":"x",` + spec + `}}`}
	}
	one := func(field string) string { return `"containers":[{"name":"c",` + field + `}]` }
	const container = `{"name":"c#","image":"i","resources":{"requests":{"cpu":"10m"},"limits":{"cpu":"20m"}}}`
	all := map[string]grown{
		"containers":        pod(`"containers":[` + texts(n, container) + `]`),
		"init containers":   pod(`"initContainers":[` + texts(n, container) + `]`),
		"bare containers":   pod(`"containers":[` + texts(n, `{"name":"c#"}`) + `]`),
		"greedy containers": pod(`"containers":[` + texts(n, `{"name":"c#","resources":{"requests":{"cpu":"9"},"limits":{"cpu":"9"}}}`) + `]`),
		"equal containers":  pod(`"containers":[` + texts(n, `{"name":"c"}`) + `]`),
		"resources":         pod(one(`"resources":{"requests":{` + texts(n, `"example.com/r#":"1"`) + `},"limits":{` + texts(n, `"example.com/r#":"1"`) + `}}`)),
		"env":               pod(one(`"env":[` + texts(n, `{"name":"V#","valueFrom":{"secretKeyRef":{"name":"s#"}}}`) + `]`)),
		"env from":          pod(one(`"envFrom":[` + texts(n, `{"secretRef":{"name":"s#"}}`) + `]`)),
		"volume mounts":     pod(one(`"volumeMounts":[` + texts(n, `{"name":"v#","mountPath":"/m#"}`) + `]`)),
		"volumes":           pod(one(`"env":[]`) + `,"volumes":[` + texts(n, `{"name":"v#","secret":{"secretName":"s#"}}`) + `]`),
		"projections":       pod(one(`"env":[]`) + `,"volumes":[{"name":"v","projected":{"sources":[` + texts(n, `{"secret":{"name":"s#"}}`) + `]}}]`),
		"tolerations":       pod(one(`"env":[]`) + `,"tolerations":[` + texts(n, `{"key":"k#","operator":"Exists","effect":"NoSchedule"}`) + `]`),
		"node selector":     pod(one(`"env":[]`) + `,"nodeSelector":{` + texts(n, `"k#":"v"`) + `}`),
		"pull secrets":      pod(one(`"env":[]`) + `,"imagePullSecrets":[` + texts(n, `{"name":"p#"}`) + `]`),
		"affinity terms": pod(one(`"env":[]`) + `,"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + texts(n, `{"topologyKey":"k#"}`) +
			`],"preferredDuringSchedulingIgnoredDuringExecution":[` + texts(n, `{"weight":1,"podAffinityTerm":{"topologyKey":"k#"}}`) + `]}}`),
		"labels": {resource: "pods", object: `{"metadata":{"name":"x","labels":{` + texts(n, `"k#":"v"`) + `},"annotations":{` + texts(n, `"k#":"v"`) + `}},"spec":{"serviceAccountName":"x"}}`},
		"owner references": {resource: "pods", old: `{"metadata":{"name":"x"}}`,
			object: `{"metadata":{"name":"x","ownerReferences":[` + texts(n, `{"apiVersion":"v1","kind":"Pod","name":"p#","uid":"u#","blockOwnerDeletion":true}`) + `]}}`},
	}
	// In these, both the pod and the stored objects have n items.
	for name, environment := range map[string]func(e *Environment){
		"containers": func(e *Environment) { e.Quotas = parsed(t, n, usage.Parse, quotaObject) },
		"env": func(e *Environment) {
			e.Accounts = parsed(t, 1, serviceaccount.Parse, fmt.Sprintf(enforcing, texts(n, `{"name":"s#"}`), ""))
		},
		"volumes": func(e *Environment) {
			e.Accounts = parsed(t, 1, serviceaccount.Parse, fmt.Sprintf(enforcing, texts(n, `{"name":"s#"}`), ""))
		},
		"pull secrets": func(e *Environment) {
			e.Accounts = parsed(t, 1, serviceaccount.Parse, fmt.Sprintf(enforcing, "", texts(n, `{"name":"p#"}`)))
		},
		"tolerations": func(e *Environment) {
			e.RuntimeClasses = parsed(t, 1, ParseRuntimeClass, `{"scheduling":{"tolerations":[`+texts(n, `{"key":"w#","operator":"Exists"}`)+`]}}`)
		},
		"node selector": func(e *Environment) {
			e.RuntimeClasses = parsed(t, 1, ParseRuntimeClass, `{"scheduling":{"nodeSelector":{`+texts(n, `"w#":"v"`)+`}}}`)
		},
	} {
		g := all[name]
		g.environment = environment
		all[name] = g
	}
	return all
}

// grownOthers are other objects with n items, and small objects beside n stored ones.
func grownOthers(t *testing.T, n int) map[string]grown {
	rbac, storage := vocabulary.Platform().Group("rbac.authorization."), vocabulary.Platform().Group("storage.")
	rules := func(of string) grown {
		return grown{group: rbac, resource: "clusterroles", object: `{"metadata":{"name":"x"},"rules":[` + of + `]}`}
	}
	rule := func(verbs, resources, names string) string {
		return `{"verbs":[` + verbs + `],"apiGroups":[""],"resources":[` + resources + `],"resourceNames":[` + names + `]}`
	}
	small := `{"metadata":{"name":"x"},"spec":{"serviceAccountName":"x","containers":[{"name":"c","resources":{"requests":{"cpu":"10m"},"limits":{"cpu":"20m"}}}]}}`
	among := func(environment func(e *Environment)) grown {
		return grown{resource: "pods", object: small, environment: environment}
	}
	many := make([]services.ResourceRule, n)
	for i := range many {
		many[i] = services.ResourceRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{fmt.Sprint("r", i)}}
	}
	return map[string]grown{
		"rules":          rules(texts(n, rule(`"get"`, `"r#"`, ``))),
		"equal rules":    rules(texts(n, rule(`"get"`, `"r"`, ``))),
		"verbs":          rules(rule(texts(n, `"v#"`), `"r"`, ``)),
		"verbs in rules": rules(texts(n, rule(`"v#"`, `"r"`, ``))),
		"resources":      rules(rule(`"get"`, texts(n, `"r#"`), ``)),
		"resource names": rules(rule(`"get"`, `"r"`, texts(n, `"n#"`))),
		"paths":          rules(`{"verbs":["get"],"nonResourceURLs":[` + texts(n, `"/p#"`) + `]}`),
		"subjects": {group: rbac, resource: "clusterrolebindings",
			object: `{"metadata":{"name":"x"},"roleRef":{"kind":"ClusterRole","name":"x"},"subjects":[` + texts(n, `{"kind":"User","name":"u#"}`) + `]}`},
		"labels of roles": {group: rbac, resource: "clusterroles", old: `{"metadata":{"name":"x"}}`, object: `{"metadata":{"name":"x","labels":{` + texts(n, `"k#":"v"`) + `}}}`},
		"held rules": {group: rbac, resource: "clusterroles", object: `{"metadata":{"name":"x"},"rules":[` + rule(`"get"`, `"r"`, ``) + `]}`,
			environment: func(e *Environment) { e.Authz = anything{services.Rules{Resource: many}} }},
		"taints":     {resource: "nodes", object: `{"metadata":{"name":"x"},"spec":{"taints":[` + texts(n, `{"key":"k#","effect":"NoSchedule"}`) + `]}}`},
		"finalizers": {resource: "persistentvolumeclaims", object: `{"metadata":{"name":"x","finalizers":[` + texts(n, `"f#"`) + `]},"spec":{}}`},
		"claimed resources": {resource: "persistentvolumeclaims", old: `{"metadata":{},"spec":{},"status":{"phase":"Bound"}}`,
			object: `{"metadata":{"name":"x"},"spec":{"resources":{"requests":{` + texts(n, `"r#":"1"`) + `}}}}`},
		"service ports": {resource: "services", object: `{"metadata":{"name":"x"},"spec":{"type":"NodePort","ports":[` + texts(n, `{"name":"p#","port":#}`) + `]}}`},
		"conditions": {group: vocabulary.Platform().Group("certificates."), resource: "certificatesigningrequests", old: `{"status":{}}`,
			object: `{"metadata":{"name":"x"},"status":{"conditions":[` + texts(n, `{"type":"T#"}`) + `]}}`},
		"limit ranges": among(func(e *Environment) {
			e.LimitRanges = parsed(t, n, limits.Parse, `{"metadata":{"name":"x#"},"spec":{"limits":[`+rangeItem+`]}}`)
		}),
		"items of a limit range": among(func(e *Environment) {
			e.LimitRanges = parsed(t, 1, limits.Parse, `{"metadata":{"name":"x"},"spec":{"limits":[`+texts(n, rangeItem)+`]}}`)
		}),
		"quotas": among(func(e *Environment) { e.Quotas = parsed(t, n, usage.Parse, quotaObject) }),
		"scopes of a quota": among(func(e *Environment) {
			e.Quotas = parsed(t, 1, usage.Parse, `{"metadata":{"name":"x"},"spec":{"hard":{"pods":"9"},"scopes":[`+texts(n, `"NotBestEffort"`)+`]}}`)
		}),
		"amounts of a quota": among(func(e *Environment) {
			e.Quotas = parsed(t, 1, usage.Parse, `{"metadata":{"name":"x"},"spec":{"hard":{"pods":"9",`+texts(n, `"requests.example.com/r#":"1"`)+`}}}`)
		}),
		"priority classes": among(func(e *Environment) {
			e.PriorityClasses = parsed(t, n, ParsePriorityClass, `{"value":#,"globalDefault":true}`)
		}),
		"storage classes": {resource: "persistentvolumeclaims", object: `{"metadata":{"name":"x"},"spec":{}}`, environment: func(e *Environment) {
			e.StorageClasses = parsed(t, n, StorageClassParser(e.Vocabulary), `{"metadata":{"name":"x#"},"provisioner":"`+storage+`"}`)
		}},
		"a namespace's node selector": among(func(e *Environment) {
			e.Namespaces = parsed(t, 1, namespaces.Parser(e.Vocabulary), `{"metadata":{"annotations":{"scheduler.alpha.platform.io/node-selector":"`+texts(n, `k#=v`)+`"}}}`)
		}),
		"webhooks": among(func(e *Environment) {
			e.Validating = parsed(t, n, webhook.Parser(vocabulary.Platform(), release.V121, webhooks.NewClients(webhooks.Settings{}), nil), `{"metadata":{"name":"x#"},"webhooks":[{"name":"w#.example.com","clientConfig":{"url":"https://127.0.0.1:1"},`+
				`"rules":[{"operations":["*"],"apiGroups":["none"],"apiVersions":["*"],"resources":["*"]}],"sideEffects":"None","admissionReviewVersions":["v1"]}]}`)
		}),
		"rules of a webhook": among(func(e *Environment) {
			e.Validating = parsed(t, 1, webhook.Parser(vocabulary.Platform(), release.V121, webhooks.NewClients(webhooks.Settings{}), nil), `{"metadata":{"name":"x"},"webhooks":[{"name":"w.example.com","clientConfig":{"url":"https://127.0.0.1:1"},"rules":[`+
				texts(n, `{"operations":["*"],"apiGroups":["none#"],"apiVersions":["*"],"resources":["*"]}`)+`],"sideEffects":"None","admissionReviewVersions":["v1"]}]}`)
		}),
	}
}

// amongOthers returns the default environment: one stored object of each type.
func amongOthers(t *testing.T) Environment {
	v := vocabulary.Platform()
	return Environment{
		Vocabulary: v, Log: slog.New(slog.DiscardHandler), NotReadyFor: time.Minute, UnreachableFor: time.Minute,
		Store: byName{objects: map[string]string{"resourcequotas": strings.ReplaceAll(quotaObject, "#", ""),
			"clusterroles": `{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["r"]}]}`, "pods": `{"spec":{"containers":[]}}`}},
		Authz:           anything{services.Rules{Resource: []services.ResourceRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"r"}}}}},
		Namespaces:      parsed(t, 1, namespaces.Parser(v), `{"metadata":{"annotations":{"scheduler.alpha.platform.io/node-selector":"a=b"}}}`),
		StorageClasses:  parsed(t, 1, StorageClassParser(v), `{"metadata":{"name":"x"}}`),
		IngressClasses:  parsed(t, 1, IngressClassParser(v), `{"metadata":{"name":"x"}}`),
		PriorityClasses: parsed(t, 1, ParsePriorityClass, `{"value":1}`),
		RuntimeClasses:  parsed(t, 1, ParseRuntimeClass, `{"scheduling":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"a"}]}}`),
		Accounts:        parsed(t, 1, serviceaccount.Parse, fmt.Sprintf(enforcing, `{"name":"none"}`, `{"name":"none"}`)),
		LimitRanges:     parsed(t, 1, limits.Parse, `{"metadata":{"name":"x"},"spec":{"limits":[`+rangeItem+`]}}`),
		PodPolicies: parsed(t, 1, podsecurity.Parse, `{"metadata":{"name":"x"},"spec":{"runAsUser":{"rule":"RunAsAny"},"seLinux":{"rule":"RunAsAny"},`+
			`"supplementalGroups":{"rule":"RunAsAny"},"fsGroup":{"rule":"RunAsAny"},"volumes":["*"],"allowPrivilegeEscalation":false}}`),
		Quotas:   parsed(t, 1, usage.Parse, strings.ReplaceAll(quotaObject, "#", "")),
		Mutating: held[webhook.Configuration]{}, Validating: held[webhook.Configuration]{},
	}
}

// TestCostGrowsWithSize doubles the lists and maps of objects and of the stored objects,
// and calls every plugin: none may take quadratic time.
func TestCostGrowsWithSize(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	for _, kinds := range []func(*testing.T, int) map[string]grown{grownPods, grownOthers} {
		for name := range kinds(t, 1) {
			t.Run(name, func(t *testing.T) { double(t, func(n int) grown { return kinds(t, n)[name] }) })
		}
	}
}

// double measures all plugins with one growing list or map.
func double(t *testing.T, of func(n int) grown) {
	made := map[int][]func(){} // the calls of all plugins, by size
	prepare := func(n int) []func() {
		if made[n] == nil {
			made[n], _ = of(n).calls(t)
		}
		return made[n]
	}
	_, plugins := of(1).calls(t)
	for i, called := range plugins {
		if ratio, bad := growth.Superlinear(sizes(), func(n int) func() { return prepare(n)[i] }); bad {
			t.Errorf("%s: the cost grows %.1f times when it doubles", called, ratio)
		}
	}
}

// calls returns a call of every function of every plugin, and their names.
func (g grown) calls(t *testing.T) (calls []func(), names []string) {
	e := amongOthers(t)
	if g.environment != nil {
		g.environment(&e)
	}
	v := e.Vocabulary
	request := services.AdmissionRequest{Operation: services.OperationCreate, Group: g.group, Version: "v1", Resource: g.resource, Namespace: "x", Name: "x",
		Object: []byte(g.object), User: services.UserInfo{Name: "u"}, OwnerTypes: []services.OwnerType{{APIVersion: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}}}
	if g.old != "" {
		request.Operation, request.OldObject = services.OperationUpdate, []byte(g.old)
	}
	if g.group == v.Group("certificates.") {
		request.Subresource = "status"
	}
	table := Table(e)
	for _, p := range table {
		for what, call := range map[string]func(context.Context, *review.Review) error{"mutate": p.Mutate, "validate": p.Validate} {
			if call == nil {
				continue
			}
			names = append(names, p.Name+" "+what)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		plugin, what, _ := strings.Cut(name, " ")
		p := table[slices.IndexFunc(table, func(p Plugin) bool { return p.Name == plugin })]
		call := p.Mutate
		if what == "validate" {
			call = p.Validate
		}
		calls = append(calls, func() {
			r := review.New(request)
			_ = call(t.Context(), r) // some are rejected after they have been read
			_, _ = r.Current()
		})
	}
	return calls, names
}
