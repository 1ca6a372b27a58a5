package portico

import (
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Option changes an environment before its start.
type Option func(*Environment)

// WithCRDs installs definitions.
func WithCRDs(definitions ...*apiextensionsv1.CustomResourceDefinition) Option {
	return func(e *Environment) { e.CRDs = append(e.CRDs, definitions...) }
}

// WithCRDPaths installs the definitions in files and folders of YAML or JSON. A missing path is
// an error.
func WithCRDPaths(paths ...string) Option {
	return func(e *Environment) {
		e.CRDDirectoryPaths, e.ErrorIfCRDPathMissing = append(e.CRDDirectoryPaths, paths...), true
	}
}

// WithWebhooks installs webhook configurations. Their address and their certificates are in
// TestControlPlane.Webhooks.
func WithWebhooks(o envtest.WebhookInstallOptions) Option {
	return func(e *Environment) { e.WebhookInstallOptions = o }
}

// WithControllers runs the controllers of Portico: deleted namespaces are emptied, and objects
// whose owners are gone are deleted.
func WithControllers() Option {
	return func(e *Environment) { e.ControlPlane.Controllers = true }
}

// WithRelease serves the API of another Kubernetes release, such as 1.21.
func WithRelease(release string) Option {
	return func(e *Environment) { e.ControlPlane.Release = release }
}

// WithArgs adds flags of the all-in-one.
func WithArgs(args ...string) Option {
	return func(e *Environment) { e.ControlPlane.Args = append(e.ControlPlane.Args, args...) }
}

// TestControlPlane is a control plane of one test.
type TestControlPlane struct {
	t testing.TB
	e *Environment
}

// Start returns a control plane that stops when the test ends. The test fails if it does not
// start.
func Start(t testing.TB, options ...Option) *TestControlPlane {
	t.Helper()
	e := &Environment{}
	for _, option := range options {
		option(e)
	}
	if _, err := e.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &TestControlPlane{t, e}
}

// Config returns the configuration of an administrator's client. The caller may change it.
func (c *TestControlPlane) Config() *rest.Config { return rest.CopyConfig(c.e.Config) }

// KubeConfig returns the path of an administrator's kubeconfig.
func (c *TestControlPlane) KubeConfig() string {
	c.t.Helper()
	path := filepath.Join(c.e.ControlPlane.dir, "kubeconfig")
	if _, err := os.Stat(path); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// Webhooks returns where the webhook server of the test has to listen, and with which
// certificates.
func (c *TestControlPlane) Webhooks() envtest.WebhookInstallOptions { return c.e.WebhookInstallOptions }

// AddUser returns a user of that name and in these groups, who has no permissions unless the test
// grants them.
func (c *TestControlPlane) AddUser(name string, groups ...string) *AuthenticatedUser {
	c.t.Helper()
	user, err := c.e.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return user
}
