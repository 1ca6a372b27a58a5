// Command extension is an extension of the API for tests: it serves widgets, which it keeps
// in memory, and the metrics of nodes and pods. It is built with the library that others
// build theirs with, and asks the API who a request is from and what that user may do.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/component-base/compatibility"
)

// settings are the flags.
type settings struct {
	serving        *options.SecureServingOptionsWithLoopback
	authentication *options.DelegatingAuthenticationOptions
	authorization  *options.DelegatingAuthorizationOptions
}

func main() {
	s := settings{options.NewSecureServingOptions().WithLoopback(), options.NewDelegatingAuthenticationOptions(), options.NewDelegatingAuthorizationOptions()}
	for _, add := range []func(*pflag.FlagSet){s.serving.AddFlags, s.authentication.AddFlags, s.authorization.AddFlags} {
		add(pflag.CommandLine)
	}
	pflag.Parse()
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until the process is asked to stop.
func (s settings) run() error {
	config := server.NewRecommendedConfig(codecs)
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.0", "", "")
	namer := openapi.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = server.DefaultOpenAPIConfig(definitions, namer)
	config.OpenAPIV3Config = server.DefaultOpenAPIV3Config(definitions, namer)
	config.OpenAPIConfig.Info.Title, config.OpenAPIV3Config.Info.Title = "extension", "extension"
	if err := s.serving.ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return err
	}
	if err := s.authentication.ApplyTo(&config.Authentication, config.SecureServing, config.OpenAPIConfig); err != nil {
		return err
	}
	if err := s.authorization.ApplyTo(&config.Authorization); err != nil {
		return err
	}
	config.ShutdownWatchTerminationGracePeriod = time.Second // else it waits a minute for open watches to end
	api, err := config.Complete().New("extension", server.NewEmptyDelegate())
	if err != nil {
		return err
	}
	for version, resources := range map[schema.GroupVersion]map[string]rest.Storage{
		widgetVersion:  {"widgets": newWidgets()},
		metricsVersion: {"nodes": nodeMetrics(), "pods": podMetrics()},
	} {
		group := server.NewDefaultAPIGroupInfo(version.Group, scheme, parameters, codecs)
		group.VersionedResourcesStorageMap[version.Version] = resources
		if err := api.InstallAPIGroup(&group); err != nil {
			return err
		}
	}
	return api.PrepareRun().RunWithContext(server.SetupSignalContext())
}
