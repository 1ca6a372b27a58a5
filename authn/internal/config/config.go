// Package config reads the file of --authentication-config, an AuthenticationConfiguration: the
// issuers of ID tokens, and which requests without credentials are anonymous. It asks no
// issuer. Fields and messages are those of Kubernetes.
package config

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/client-go/util/cert"

	"github.com/portico-platform/portico/authn/internal/issuers"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/kit/configfile"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

const kind = "AuthenticationConfiguration"

// Settings are those of the process.
type Settings struct {
	Vocabulary vocabulary.Vocabulary
	Release    release.Release
	// Reserved are the issuers that the file must not name: those of service account tokens.
	Reserved []string
	// Issuer has the fields of each issuer that are not in the file.
	Issuer issuers.Config
}

// File is the content of a file.
type File struct {
	Issuers []issuers.Config
	// Anonymous is nil if the file does not say.
	Anonymous *apiserver.AnonymousAuthConfig
}

// Parser parses the file.
type Parser struct {
	settings Settings
	compiler authenticationcel.Compiler
	decoder  runtime.Decoder
}

// NewParser returns a parser. It returns an error if expressions cannot be compiled at all.
func NewParser(s Settings) (*Parser, error) {
	environment, err := cel.New(cel.Config{Release: s.Release}).Bounded()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return &Parser{settings: s, compiler: authenticationcel.NewCompiler(environment),
		decoder: serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()}, nil
}

// Parse returns the content of a file. Errors name the field.
func (p *Parser) Parse(content []byte) (*File, error) {
	translated, err := configfile.JSON(content, kind, p.settings.Vocabulary)
	if err != nil {
		return nil, err
	}
	decoded, err := runtime.Decode(p.decoder, translated)
	if err != nil {
		return nil, err
	}
	c, ok := decoded.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("kind: expected %s, got %T", kind, decoded)
	}
	found := validation.ValidateAuthenticationConfiguration(p.compiler, c, p.settings.Reserved)
	if err := append(found, p.check(c)...).ToAggregate(); err != nil {
		return nil, err
	}
	file := &File{Anonymous: c.Anonymous}
	for i, a := range c.JWT {
		one, err := p.issuer(a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at(i), err)
		}
		file.Issuers = append(file.Issuers, one)
	}
	return file, nil
}

// check finds what Kubernetes accepts and this service does not.
func (p *Parser) check(c *apiserver.AuthenticationConfiguration) (found field.ErrorList) {
	domain := p.settings.Vocabulary.Domain
	for i, a := range c.JWT {
		if selector := a.Issuer.EgressSelectorType; selector != "" {
			found = append(found, field.Invalid(at(i).Child("issuer", "egressSelectorType"), selector, "authn has no egress selectors"))
		}
		for n, extra := range a.ClaimMappings.Extra {
			of, _, _ := strings.Cut(extra.Key, "/")
			if domain != vocabulary.K8s().Domain && (of == domain || strings.HasSuffix(of, "."+domain)) {
				found = append(found, field.Invalid(at(i).Child("claimMappings", "extra").Index(n).Child("key"), extra.Key, domain+" and its subdomains are reserved"))
			}
		}
	}
	return found
}

func at(i int) *field.Path { return field.NewPath("jwt").Index(i) }

// issuer returns a valid issuer.
func (p *Parser) issuer(a apiserver.JWTAuthenticator) (issuers.Config, error) {
	one := p.settings.Issuer
	one.JWTAuthenticator = a
	var invalid field.ErrorList
	if one.Expressions, invalid = validation.CompileAndValidateJWTAuthenticator(p.compiler, a, p.settings.Reserved); len(invalid) > 0 {
		return one, invalid.ToAggregate()
	}
	if a.Issuer.CertificateAuthority == "" {
		return one, nil
	}
	var err error
	one.Roots, err = cert.NewPoolFromBytes([]byte(a.Issuer.CertificateAuthority))
	return one, err
}
