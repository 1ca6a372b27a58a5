// Package reload is services/reload under its former path, for the importers that have not
// moved yet: files such as certificates are read again when they are replaced.
package reload

import "github.com/portico-platform/portico/services/reload"

// Config configures Files.
type Config[T any] = reload.Config[T]

// Files is a value that is parsed from files.
type Files[T any] = reload.Files[T]

// Open reads the files for the first time.
func Open[T any](c Config[T]) (*Files[T], error) { return reload.Open(c) }
