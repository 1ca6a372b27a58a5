package atrest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/kit/etcd/atrest/internal/kms"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// file is an EncryptionConfiguration.
type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Resources  []struct {
		Resources []string                     `json:"resources"`
		Providers []map[string]json.RawMessage `json:"providers"`
	} `json:"resources"`
}

// keyList is the configuration of a provider with keys.
type keyList struct {
	Keys []struct {
		Name   string `json:"name"`
		Secret string `json:"secret"`
	} `json:"keys"`
}

// config is a parsed EncryptionConfiguration.
type config struct {
	rules   []rule
	plugins []*kms.Provider
}

// rule says how the values of some types are encrypted.
type rule struct {
	types []pattern
	// keys encrypt and decrypt, in the order of the file; the first one encrypts.
	keys []key
}

// key is a key of a provider. The provider identity is one without a sealer.
type key struct {
	prefix string // of the values that it encrypts
	sealer sealer
}

// pattern selects types; "*" is any resource, or any group.
type pattern struct{ resource, group string }

func (p pattern) covers(resource, group string) bool {
	return (p.resource == "*" || p.resource == resource) && (p.group == "*" || p.group == group)
}

// rule returns the rule of a type, nil if there is none.
func (c *config) rule(gr resource.GroupResource) *rule {
	for i := range c.rules {
		for _, p := range c.rules[i].types {
			if p.covers(gr.Resource, gr.Group) {
				return &c.rules[i]
			}
		}
	}
	return nil
}

// parse reads an EncryptionConfiguration. Errors name the field, and never contain a secret.
func parse(content []byte, v vocabulary.Vocabulary, plugins *kms.Providers) (*config, error) {
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, discreet(err)
	}
	var f file
	if err := strictly(asJSON, &f); err != nil {
		return nil, err
	}
	version := v.Group("apiserver.config.") + "/v1"
	switch {
	case f.APIVersion != version:
		return nil, fmt.Errorf("apiVersion: %q is not supported: use %s", f.APIVersion, version)
	case f.Kind != "EncryptionConfiguration":
		return nil, fmt.Errorf("kind: %q is not supported: use EncryptionConfiguration", f.Kind)
	case len(f.Resources) == 0:
		return nil, errors.New("resources: at least one entry is required")
	}
	c, p := &config{}, parsing{plugins: plugins, names: map[string]bool{}}
	for i, entry := range f.Resources {
		field := fmt.Sprintf("resources[%d]", i)
		if len(entry.Resources) == 0 {
			return nil, fmt.Errorf("%s.resources: at least one resource is required", field)
		}
		if len(entry.Providers) == 0 {
			return nil, fmt.Errorf("%s.providers: at least one provider is required", field)
		}
		c.rules = append(c.rules, rule{})
		for j, name := range entry.Resources {
			if err := c.add(name, v); err != nil {
				return nil, fmt.Errorf("%s.resources[%d]: %w", field, j, err)
			}
		}
		if c.rules[i].keys, err = p.parseProviders(field+".providers", entry.Providers); err != nil {
			return nil, err
		}
	}
	c.plugins = p.used
	return c, nil
}

// add adds a resource to the last rule.
func (c *config) add(name string, v vocabulary.Vocabulary) error {
	plural, group, _ := strings.Cut(name, ".")
	if plural == "" || strings.ContainsAny(name, "/ ") || strings.Contains(name, "*") && plural != "*" && group != "*" || plural != "*" && group == "*" {
		return fmt.Errorf("%q is not a resource, resource.group, *.group or *.*", name)
	}
	if name == "*" {
		return errors.New(`"*" is not supported: use *.* for all resources, or *. for those of the core group`)
	}
	added := pattern{plural, group}
	if group != "*" {
		added.group = v.ShortGroup(group)
	}
	for _, r := range c.rules {
		for _, p := range r.types {
			if p.covers(added.resource, added.group) {
				return fmt.Errorf("%q is covered by an earlier entry", name)
			}
		}
	}
	last := &c.rules[len(c.rules)-1]
	last.types = append(last.types, added)
	return nil
}

func (c *parsing) parseProviders(field string, providers []map[string]json.RawMessage) (keys []key, err error) {
	for i, p := range providers {
		at := fmt.Sprintf("%s[%d]", field, i)
		if len(p) != 1 {
			return nil, fmt.Errorf("%s: exactly one of identity, aescbc, aesgcm, secretbox and kms is required", at)
		}
		for name, raw := range p {
			var added []key
			switch at += "." + name; name {
			case "identity":
				if err := strictly(raw, &struct{}{}); err != nil {
					return nil, fmt.Errorf("%s: %w", at, err)
				}
				added = []key{{}}
			case "aescbc", "aesgcm", "secretbox":
				if added, err = parseKeys(at, name, raw); err != nil {
					return nil, err
				}
			case "kms":
				if added, err = c.parseKMS(at, raw); err != nil {
					return nil, err
				}
			default:
				return nil, fmt.Errorf("%s: not supported: use identity, aescbc, aesgcm, secretbox or kms", at)
			}
			for _, k := range added {
				if slices.ContainsFunc(keys, func(other key) bool { return other.prefix == k.prefix }) {
					return nil, fmt.Errorf("%s: identity, or a key with the same name, is listed twice", at)
				}
				keys = append(keys, k)
			}
		}
	}
	return keys, nil
}

func parseKeys(field, provider string, raw []byte) (keys []key, err error) {
	var list keyList
	if err := strictly(raw, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	if len(list.Keys) == 0 {
		return nil, fmt.Errorf("%s.keys: at least one key is required", field)
	}
	sizes := secretSizes(provider)
	for i, k := range list.Keys {
		at := fmt.Sprintf("%s.keys[%d]", field, i)
		if err := checkName(k.Name); err != nil {
			return nil, fmt.Errorf("%s.name: %w", at, err)
		}
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		if err != nil {
			return nil, fmt.Errorf("%s.secret: it is not base64", at)
		}
		if !slices.Contains(sizes, len(secret)) {
			return nil, fmt.Errorf("%s.secret: it has %d bytes, and %s needs one of %v", at, len(secret), provider, sizes)
		}
		s, err := newSealer(provider, secret)
		if err != nil {
			return nil, fmt.Errorf("%s.secret: %w", at, err)
		}
		keys = append(keys, key{Prefix + provider + ":v1:" + k.Name + ":", s})
	}
	return keys, nil
}

func checkName(name string) error {
	if name == "" || len(name) > 253 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) {
		return errors.New("it must have 1 to 253 printable ASCII characters without colons and spaces")
	}
	return nil
}

// strictly decodes JSON without unknown, repeated or differently spelled fields.
func strictly(raw []byte, into any) error {
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return errors.New("it must not be null")
	}
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err == nil {
		err = errors.Join(strict...)
	}
	if err != nil {
		return discreet(err)
	}
	return nil
}

// perhapsSecret matches text that may be a secret or a part of one, and no name of a field.
var perhapsSecret = regexp.MustCompile(`[A-Za-z0-9+/=]{14,}`)

// discreet returns an error without what may be a secret: a typo, such as a missing colon, makes one
// part of a name, which the decoder quotes.
func discreet(err error) error { return errors.New(perhapsSecret.ReplaceAllString(err.Error(), "...")) }
