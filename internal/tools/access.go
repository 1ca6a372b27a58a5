package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/internal/tools/rbac"
)

// pageSize bounds the objects of one response.
const pageSize = 500

// access finds roles and bindings in either vocabulary.
type access struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func (s *session) access() (*access, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(discover)
	return &access{client, restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)}, nil
}

// requestFlags are the flags of a request.
type requestFlags struct {
	subresource   string
	allNamespaces bool
}

func (f *requestFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.subresource, "subresource", "", "`name` of a subresource, such as log")
	c.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "check the request across all namespaces")
}

// request parses VERB and RESOURCE: a path that begins with /, or a resource as kubectl names it,
// with /NAME for one object.
func (s *session) request(a *access, f requestFlags, verb, resource string) (rbac.Request, error) {
	if strings.HasPrefix(resource, "/") {
		return rbac.Request{Verb: strings.ToLower(verb), Path: resource}, nil
	}
	resource, name, _ := strings.Cut(resource, "/")
	gvr, err := a.mapper.ResourceFor(schema.ParseGroupResource(resource).WithVersion(""))
	if err != nil {
		return rbac.Request{}, err
	}
	r := rbac.Request{Verb: strings.ToLower(verb), Group: gvr.Group, Resource: gvr.Resource, Subresource: f.subresource, Name: name}
	kind, err := a.mapper.KindFor(gvr)
	if err != nil {
		return r, err
	}
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return r, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && !f.allNamespaces {
		r.Namespace, err = s.inNamespace()
	}
	return r, err
}

// version returns the preferred version of a resource.
func (a *access) version(resource string) (string, error) {
	gvr, err := a.mapper.ResourceFor(schema.ParseGroupResource(resource).WithVersion(""))
	return gvr.Version, err
}

// policy reads the roles and bindings that apply in a namespace.
func (a *access) policy(ctx context.Context, namespace string) (*rbac.Policy, error) {
	p := &rbac.Policy{}
	errs := []error{list(ctx, a, "clusterroles", "", &p.ClusterRoles), list(ctx, a, "clusterrolebindings", "", &p.ClusterRoleBindings)}
	if namespace != "" {
		errs = append(errs, list(ctx, a, "roles", namespace, &p.Roles), list(ctx, a, "rolebindings", namespace, &p.RoleBindings))
	}
	return p, errors.Join(errs...)
}

// list reads all objects of a resource, page by page.
func list[T any](ctx context.Context, a *access, resource, namespace string, into *[]T) error {
	gvr, err := a.mapper.ResourceFor(schema.GroupVersionResource{Resource: resource})
	if err != nil {
		return err
	}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := a.client.Resource(gvr).Namespace(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			var object T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &object); err != nil {
				return fmt.Errorf("%s %s: %w", resource, item.GetName(), err)
			}
			*into = append(*into, object)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func (s *session) whoCan() *cobra.Command {
	var flags requestFlags
	c := &cobra.Command{
		Use: "who-can VERB RESOURCE[/NAME]|/PATH", Short: "Lists users, groups and ServiceAccounts that may make a request, with binding and role", Args: cobra.ExactArgs(2),
		Example: "  portico who-can delete pods -n shop\n  portico who-can get secrets/tls -n shop\n  portico who-can get /metrics",
		RunE: func(c *cobra.Command, args []string) error {
			a, err := s.access()
			if err != nil {
				return err
			}
			r, err := s.request(a, flags, args[0], args[1])
			if err != nil {
				return err
			}
			p, err := a.policy(c.Context(), r.Namespace)
			if err != nil {
				return err
			}
			grants := p.Who(r)
			return s.print(map[string]any{"request": r, "grants": grants}, func(w io.Writer) error {
				t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
				fmt.Fprintln(t, "SUBJECT\tROLE\tBINDING")
				for _, g := range grants {
					plain.Fprintf(t, "%s\t%s\t%s\n", rbac.SubjectName(g.Subject), g.Role, g.Binding)
				}
				return t.Flush()
			})
		},
	}
	flags.register(c)
	return c
}

// explanation is the answer of explain-access.
type explanation struct {
	User    string       `json:"user"`
	Groups  []string     `json:"groups"`
	Request rbac.Request `json:"request"`
	// Allowed and Reason are the decision of the server, which other authorizers take part in.
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason,omitempty"`
	// Chain is the grants of RBAC. Without one, Bound are the bindings of the user, and Roles
	// those that would permit the request.
	Chain []rbac.Grant `json:"chain"`
	Bound []rbac.Grant `json:"bound,omitempty"`
	Roles []string     `json:"roles,omitempty"`
}

func (s *session) explainAccess() *cobra.Command {
	var flags requestFlags
	var user string
	var groups []string
	c := &cobra.Command{
		Use: "explain-access --as USER VERB RESOURCE[/NAME]|/PATH", Short: "Explains why a user may make a request, or what is missing", Args: cobra.ExactArgs(2),
		Example: "  portico explain-access --as alice --as-group staff get pods -n shop\n  portico explain-access --as system:serviceaccount:ci:bot create deployments -n shop",
		RunE: func(c *cobra.Command, args []string) error {
			a, err := s.access()
			if err != nil {
				return err
			}
			r, err := s.request(a, flags, args[0], args[1])
			if err != nil {
				return err
			}
			e, err := a.explain(c.Context(), rbac.NewUser(user, groups...), r)
			if err != nil {
				return err
			}
			if err := s.print(e, e.write); err != nil || e.Allowed {
				return err
			}
			return negative{}
		},
	}
	flags.register(c)
	c.Flags().StringVar(&user, "as", "", "`name` of the user; system:serviceaccount:NAMESPACE:NAME for a ServiceAccount")
	c.Flags().StringArrayVar(&groups, "as-group", nil, "`name` of a group of the user; may be given more than once")
	_ = c.MarkFlagRequired("as")
	return c
}

func (a *access) explain(ctx context.Context, u rbac.User, r rbac.Request) (*explanation, error) {
	p, err := a.policy(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	e := &explanation{User: u.Name, Groups: u.Groups, Request: r, Chain: p.Of(u, r)}
	if len(e.Chain) == 0 {
		e.Bound, e.Roles = p.Bound(u, r), p.Permitting(r)
	}
	return e, a.decide(ctx, e)
}

// decide asks the server.
func (a *access) decide(ctx context.Context, e *explanation) error {
	kind, err := a.mapper.ResourceFor(schema.GroupVersionResource{Resource: "subjectaccessreviews"})
	if err != nil {
		return err
	}
	spec := authorizationv1.SubjectAccessReviewSpec{User: e.User, Groups: e.Groups}
	if r := e.Request; r.Path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.Path, Verb: r.Verb}
	} else {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: r.Namespace, Verb: r.Verb, Group: r.Group,
			Resource: r.Resource, Subresource: r.Subresource, Name: r.Name}
	}
	review, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: "SubjectAccessReview"}, Spec: spec})
	if err != nil {
		return err
	}
	answer, err := a.client.Resource(kind).Create(ctx, &unstructured.Unstructured{Object: review}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	e.Allowed, _, _ = unstructured.NestedBool(answer.Object, "status", "allowed")
	e.Reason, _, _ = unstructured.NestedString(answer.Object, "status", "reason")
	return nil
}

// write writes the explanation for people.
func (e *explanation) write(w io.Writer) error {
	answer := "no"
	if e.Allowed {
		answer = "yes"
	}
	plain.Fprintf(w, "%s: %s may %s%s\n", answer, e.User, map[bool]string{true: "", false: "not "}[e.Allowed], e.Request)
	if e.Reason != "" {
		plain.Fprintf(w, "reason: %s\n", e.Reason)
	}
	for _, g := range e.Chain {
		plain.Fprintf(w, "  %s\n", g)
	}
	if len(e.Chain) > 0 {
		return nil
	}
	plain.Fprintf(w, "groups: %s\n", strings.Join(e.Groups, ", "))
	plain.Fprintf(w, "%d bindings name the user or a group, none with a rule for this:\n", len(e.Bound))
	for _, g := range e.Bound {
		plain.Fprintf(w, "  %s\n", g)
	}
	plain.Fprintf(w, "%d roles would allow it with a binding:\n", len(e.Roles))
	for _, role := range e.Roles {
		plain.Fprintf(w, "  %s\n", role)
	}
	return nil
}
