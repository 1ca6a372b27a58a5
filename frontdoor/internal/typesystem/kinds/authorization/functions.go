// Package authorization holds the functions of access reviews, which are virtual types.
// Package reviews responds to them. It serves "Resources and their fields" of the
// specification.
package authorization

import "github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"

// Functions are those that the files of this folder name.
var Functions = kinds.Functions{
	Convert: map[string]kinds.ConvertFunc{
		"reviewFromV1beta1": reviewFromV1beta1,
		"reviewToV1beta1":   reviewToV1beta1,
	},
}
