// Package builtin joins the files of package kinds with the Go functions that they refer to. It has no logic.
// It serves "Resources and their fields" of the specification.
package builtin

import (
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/access"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/admissionregistration"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/apiextensions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/apiregistration"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/apps"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/authorization"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/autoscaling"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/batch"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/certificates"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/coordination"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/compute"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/labelkeys"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/podtable"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/podwarnings"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/profiles"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/system"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/updates"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/services"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/volumes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/discovery"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/events"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/extension"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/flowcontrol"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/internal"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/meta"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/networking"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/node"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/policy"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/rbac"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/resource"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/scheduling"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/storage"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/storagemigration"
)

// Read returns the built-in kinds with resolved functions. All callers share the set and
// must not modify it. An error is a mistake in a file.
var Read = sync.OnceValues(func() (*kinds.Set, error) {
	set, err := kinds.Read()
	if err != nil {
		return nil, err
	}
	functions, err := kinds.Join(tables[:]...)
	if err != nil {
		return nil, err
	}
	return set, set.Resolve(functions)
})

// Cells returns the functions for cells of Tables; nil if Read returns an error.
func Cells() (map[string]cell.Func, map[string]cell.RowFunc) {
	set, err := Read()
	if err != nil {
		return nil, nil
	}
	return set.Functions.Cells, set.Functions.Rows
}

// tables are the functions of all folders.
var tables = [...]kinds.Functions{
	meta.Functions, core.Functions, pods.Functions, compute.Functions, podtable.Functions, updates.Functions, labelkeys.Functions, podwarnings.Functions, profiles.Functions, system.Functions, services.Functions, volumes.Functions, apps.Functions, batch.Functions, autoscaling.Functions, authorization.Functions,
	networking.Functions, node.Functions, discovery.Functions, policy.Functions, rbac.Functions, certificates.Functions, coordination.Functions, scheduling.Functions, events.Functions,
	flowcontrol.Functions, storage.Functions, storagemigration.Functions, resource.Functions, admissionregistration.Functions, apiextensions.Functions, apiregistration.Functions, extension.Functions, access.Functions,
	internal.Functions,
}
