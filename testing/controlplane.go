package portico

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/internal/allinone"
	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/kit/run"
)

// ControlPlane configures the services of an Environment.
type ControlPlane struct {
	// Release is the Kubernetes release whose API is served; 1.36 if it is empty.
	Release string
	// Controllers runs the controllers of Portico, such as namespace deletion and garbage
	// collection, which envtest does not have.
	Controllers bool
	// Args are further flags of the all-in-one, as in --enable-admission-plugins=PodSecurity.
	// Of a flag that is given twice the last value counts.
	Args []string
	// LogLevel is the minimum level of the log on standard error; error if it is empty.
	LogLevel string
	// Dir is the data folder; if it is empty, a temporary one that Stop removes.
	Dir string

	running   *run.Running
	dir       string
	temporary bool
	address   string
}

// start returns when the API is served.
func (c *ControlPlane) start(ctx context.Context) error {
	if c.running != nil {
		return errors.New("the control plane is running")
	}
	var err error
	if c.dir = c.Dir; c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "portico-test-"); err != nil {
			return err
		}
		c.temporary = true
	}
	if err = c.run(ctx); err != nil {
		return errors.Join(fmt.Errorf("starting the control plane: %w", err), c.remove())
	}
	return nil
}

func (c *ControlPlane) run(ctx context.Context) error {
	address, err := loopback.FreeAddress()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	args := []string{"--vocabulary=k8s", "--emulated-version=" + or(c.Release, "1.36"), "--log-level=" + or(c.LogLevel, "error"),
		"--data-dir=" + c.dir, "--bind-address=" + host, "--secure-port=" + port,
		"--unsafe-no-fsync", "--disk-reserve-bytes=1", "--shutdown-timeout=0s", "--memory-release=false"}
	services := allinone.WithHome(nil)
	if c.Controllers {
		services = append(services, allinone.Workers()...)
	} else {
		// Without its controller no namespace gets the account that the plugin requires.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	c.running, err = run.Start(ctx, run.App{Name: "portico", Services: services}, append(args, c.Args...))
	c.address = address
	if err == nil && c.running == nil {
		return errors.New("--help is not a flag of a test")
	}
	return err
}

// or returns the first text that is not empty.
func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// config returns the configuration of an administrator's client.
func (c *ControlPlane) config() (*rest.Config, error) {
	authority, err := os.ReadFile(filepath.Join(c.dir, "pki", "ca.crt"))
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(c.dir, "admin-token"))
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: "https://" + c.address, BearerToken: strings.TrimSpace(string(token)),
		TLSClientConfig: rest.TLSClientConfig{CAData: authority}, QPS: -1}, nil
}

// stop ends the services and removes a temporary folder.
func (c *ControlPlane) stop() error {
	if c.running != nil {
		c.running.Stop()
		c.running = nil
	}
	return c.remove()
}

func (c *ControlPlane) remove() error {
	if !c.temporary {
		return nil
	}
	c.temporary = false
	return os.RemoveAll(c.dir)
}
