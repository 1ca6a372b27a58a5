package profile

import (
	"encoding/pem"
	"slices"
	"testing"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// FuzzParse parses requests, as PEM and as DER: a template is never a CA, and those of node
// clients have only the organization of nodes.
func FuzzParse(f *testing.F) {
	v := vocabulary.Platform()
	profiles := BuiltIn(v, release.V136)
	f.Fuzz(func(t *testing.T, content []byte, wrapped bool) {
		if wrapped {
			content = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: content})
		}
		request, err := Parse(content)
		if err != nil {
			return
		}
		for name, p := range profiles {
			template, err := p.Template(request, []string{digitalSignature, keyEncipherment, clientAuth})
			if err != nil {
				continue
			}
			if template.IsCA || !template.BasicConstraintsValid {
				t.Errorf("%s signs an authority", name)
			}
			if name == v.Signers.NodeClient && !slices.Equal(template.Subject.Organization, []string{nodesOrganization}) {
				t.Errorf("%s signs for %v", name, template.Subject)
			}
		}
	})
}
