// Package storagemigration holds the functions of StorageVersionMigrations. It serves
// "Resources and their fields" of the specification.
package storagemigration

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"migratedResource": migratedResource,
		"migrationEnds":    migrationEnds,
	},
	Cells: map[string]cell.Func{
		"showMigratedResource": showMigratedResource,
		"showMigrationState":   showMigrationState,
	},
}
