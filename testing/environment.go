// Package portico runs a control plane inside a test: the whole suite in the test's process, with
// an API of Kubernetes 1.36 that is served in a fraction of a second. Start is for tests that are
// written for it; Environment takes the place of controller-runtime's envtest.Environment in
// existing ones. Any number run at the same time and share nothing.
//
// docs/testing.md is the guide for authors of operators. The package belongs to tests and is not
// part of a service.
package portico

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// pollInterval is how often the installation of definitions and webhooks is checked.
const pollInterval = 5 * time.Millisecond

// startTimeout bounds Environment.Start.
const startTimeout = 20 * time.Second

// Environment is a control plane with the fields and methods of envtest.Environment. Start, use
// and Stop it; a stopped environment may be started again, without its data.
type Environment struct {
	// ControlPlane configures the services.
	ControlPlane ControlPlane
	// Scheme decides which CRDs get conversion webhooks, as in envtest.
	Scheme *runtime.Scheme
	// Config is the configuration of an administrator's client, and KubeConfig the same as a
	// file. Start sets both.
	Config     *rest.Config
	KubeConfig []byte

	// What is installed, as in envtest. Start sets CRDs to all that it has installed, and the
	// local address and certificates of WebhookInstallOptions.
	CRDInstallOptions     envtest.CRDInstallOptions
	WebhookInstallOptions envtest.WebhookInstallOptions
	ErrorIfCRDPathMissing bool
	CRDs                  []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths     []string

	// Programs are not needed: these fields of envtest have no effect.
	BinaryAssetsDirectory, DownloadBinaryAssetsVersion, DownloadBinaryAssetsIndexURL string
	DownloadBinaryAssets, AttachControlPlaneOutput                                   bool
	// ControlPlaneStartTimeout bounds the start; 20 seconds if it is zero.
	ControlPlaneStartTimeout time.Duration
	// ControlPlaneStopTimeout has no effect: services stop without waiting for clients.
	ControlPlaneStopTimeout time.Duration

	installed *envtest.Environment
}

// Start starts the control plane, installs CRDs and webhooks and returns the configuration of an
// administrator's client. After an error nothing is left running.
func (e *Environment) Start() (*rest.Config, error) {
	timeout := e.ControlPlaneStartTimeout
	if timeout == 0 {
		timeout = startTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := e.ControlPlane.start(ctx); err != nil {
		return nil, err
	}
	if err := e.install(ctx); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e.Config, nil
}

// answers waits for the first answer about the default namespace, for which envtest waits no longer
// than five seconds: a machine with other work may need more.
func (e *Environment) answers(ctx context.Context) error {
	c, err := client.New(e.Config, client.Options{})
	if err != nil {
		return err
	}
	var last error
	if err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		last = c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{})
		return last == nil, nil
	}); err != nil {
		return fmt.Errorf("waiting for the default namespace: %w", errors.Join(err, last))
	}
	return nil
}

// install does what envtest does in a cluster that exists.
func (e *Environment) install(ctx context.Context) error {
	var err error
	if e.Config, err = e.ControlPlane.config(); err != nil {
		return err
	}
	if err := e.answers(ctx); err != nil {
		return err
	}
	if e.KubeConfig, err = kubeConfig(e.Config); err != nil {
		return err
	}
	exists := true
	e.installed = &envtest.Environment{
		UseExistingCluster: &exists, Config: e.Config, Scheme: e.Scheme,
		CRDInstallOptions: e.CRDInstallOptions, WebhookInstallOptions: e.WebhookInstallOptions,
		ErrorIfCRDPathMissing: e.ErrorIfCRDPathMissing, CRDs: e.CRDs, CRDDirectoryPaths: e.CRDDirectoryPaths,
	}
	if e.installed.CRDInstallOptions.PollInterval == 0 {
		e.installed.CRDInstallOptions.PollInterval = pollInterval
	}
	if e.installed.WebhookInstallOptions.PollInterval == 0 {
		e.installed.WebhookInstallOptions.PollInterval = pollInterval
	}
	if _, err = e.installed.Start(); err != nil {
		return fmt.Errorf("installing CRDs and webhooks: %w", err)
	}
	e.Scheme, e.CRDs = e.installed.Scheme, e.installed.CRDs
	e.CRDInstallOptions, e.WebhookInstallOptions = e.installed.CRDInstallOptions, e.installed.WebhookInstallOptions
	return nil
}

// Stop ends the control plane and removes its files.
func (e *Environment) Stop() error {
	var err error
	if e.installed != nil {
		err = e.installed.Stop()
		e.installed = nil
	}
	return errors.Join(err, e.ControlPlane.stop())
}

// AddUser returns a user of that name and in these groups. base may be nil; its settings other
// than the address and the credentials are kept. The environment must have been started.
func (e *Environment) AddUser(user envtest.User, base *rest.Config) (*AuthenticatedUser, error) {
	return e.ControlPlane.addUser(user, base)
}
