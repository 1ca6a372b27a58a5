// Command generate writes the types of each release, as package published packs them, into
// the folder packed.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/published"
	"github.com/portico-platform/portico/services/release"
)

func main() {
	for _, r := range []release.Release{release.V121, release.V136} {
		packed, err := published.Pack(r)
		if err == nil {
			err = os.WriteFile(filepath.Join("packed", r.String()+".txt"), packed, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
