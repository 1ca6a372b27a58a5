package discovery

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/fragments"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/openapi"
)

// second makes the documents of OpenAPI v2, each about all types, from fragments that generations share.
type second struct {
	json, binary newest
	// mu is held while fragments are looked up or made.
	mu sync.Mutex
	// builtIn is about built-in types, and has these definitions. merged also has what extensions describe.
	builtIn *fragments.Fragment
	named   map[string]bool
	merged  *fragments.Fragment
	with    map[string]*OpenAPI
	// custom are about custom types, by the hashes of parts.
	custom map[string]*fragments.Fragment
	// templates are what their paths are made of, by the keys of likenesses, of which there are few.
	templates  map[string]*fragments.Template
	templating sync.Mutex
}

// types are what a document of v2 describes.
type types struct {
	all, builtIn *openapi.Builder
	parts        map[string]openapi.Part
	extensions   map[string]*OpenAPI
}

// forms returns the forms of the document of a generation.
func (s *second) forms(g generation, of types) []document {
	form := func(mediaType string, kept *newest, in fragments.Form, write func(fragments.Whole, io.Writer) error) document {
		return document{mediaType: mediaType, body: func(ctx context.Context) (*body, error) {
			return kept.get(ctx, g, func() (*body, error) {
				whole, err := s.whole(of, in)
				if err != nil {
					return nil, err
				}
				return packed(func(to io.Writer) error { return write(whole, to) })
			})
		}}
	}
	plain := form(mediaJSON, &s.json, fragments.JSON, fragments.Whole.JSON)
	binary := form(protobufV2, &s.binary, fragments.Protobuf, fragments.Whole.Protobuf)
	return converter{protobufV2, protobufV2First, nil, nil}.forms(plain, binary)
}

// whole returns a document. It makes the fragments that there are not yet in a form, and drops those that are not part of it.
func (s *second) whole(of types, in fragments.Form) (fragments.Whole, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	base, err := s.base(of)
	if err != nil {
		return fragments.Whole{}, err
	}
	now := map[string]*fragments.Fragment{}
	var missing []openapi.Part
	for _, part := range of.parts {
		if some, _ := part.Custom(); !some {
			continue
		}
		hash := part.Hash()
		if now[hash] = s.custom[hash]; now[hash] == nil || !now[hash].Has(in) {
			missing = append(missing, part)
		}
	}
	if err := s.make(of.all, missing, in, now); err != nil {
		return fragments.Whole{}, err
	}
	s.custom = now
	all := slices.Collect(maps.Values(now))
	return fragments.Whole{Head: of.builtIn.V2(), Fragments: append([]*fragments.Fragment{base}, all...)}, nil
}

// make adds the fragments of parts in a form to made.
func (s *second) make(b *openapi.Builder, parts []openapi.Part, in fragments.Form, made map[string]*fragments.Fragment) error {
	var adding sync.Mutex
	return fragments.Each(len(parts), func(i int) error {
		f, err := s.fragment(b, parts[i], in)
		if err != nil {
			return err
		}
		adding.Lock()
		defer adding.Unlock()
		hash := parts[i].Hash()
		made[hash] = f.With(made[hash])
		return nil
	})
}

// fragment makes the fragment of a part in a form.
func (s *second) fragment(b *openapi.Builder, part openapi.Part, in fragments.Form) (*fragments.Fragment, error) {
	alike, names, ok := b.Alike(part)
	if !ok || !plain(names) {
		_, only := part.Custom()
		return fragments.New(b.V2Without(s.named, part.OfCustom()), only)
	}
	filled := make([]fragments.Filled, len(alike))
	for i, like := range alike {
		t, err := s.template(b, like)
		if err != nil {
			return nil, err
		}
		filled[i] = fragments.Filled{Template: t, Names: names[i]}
	}
	return fragments.Fill(in, b.V2Definitions(part, s.named), filled...)
}

// plain reports whether all names fit into templates.
func plain(names [][]string) bool {
	return !slices.ContainsFunc(names, func(of []string) bool { return !fragments.Plain(of) })
}

// template returns the template of a likeness.
func (s *second) template(b *openapi.Builder, l openapi.Likeness) (*fragments.Template, error) {
	s.templating.Lock()
	defer s.templating.Unlock()
	if t := s.templates[l.Key]; t != nil {
		return t, nil
	}
	t, err := fragments.NewTemplate(b.V2Like(l, s.named), b.StandIns())
	if err == nil {
		s.templates[l.Key] = t
	}
	return t, err
}

// base returns the fragment of built-in types and extensions.
func (s *second) base(of types) (*fragments.Fragment, error) {
	if s.builtIn == nil {
		document := of.builtIn.V2(slices.Collect(maps.Values(of.builtIn.Parts()))...)
		f, err := fragments.New(document, false)
		if err != nil {
			return nil, err
		}
		s.builtIn, s.named, s.templates = f, map[string]bool{}, map[string]*fragments.Template{}
		for name := range document.Definitions {
			s.named[name] = true
		}
	}
	if len(of.extensions) == 0 {
		s.merged, s.with = nil, nil
		return s.builtIn, nil
	}
	if s.merged != nil && maps.Equal(s.with, of.extensions) {
		return s.merged, nil
	}
	document := of.builtIn.V2(slices.Collect(maps.Values(of.builtIn.Parts()))...)
	same := of.also(document)
	f, err := fragments.New(with(document, of.extensions), false)
	if err == nil && !same { // else it depends on custom types
		s.merged, s.with = f, of.extensions
	}
	return f, err
}

// also adds the definitions of custom types to a document whose names extensions use, too, and reports whether
// there are any: one of the extension then gets another name.
func (of types) also(document *spec.Swagger) (some bool) {
	custom := of.all.Catalogue.Definitions()
	names := func(yield func(string) bool) {
		for _, x := range of.extensions {
			if x.v2 == nil {
				continue
			}
			for name := range x.v2.Definitions {
				if _, known := document.Definitions[name]; !known && custom[name] != nil && !yield(name) {
					return
				}
			}
		}
	}
	for name, definition := range of.all.Named(names).Definitions {
		if _, known := document.Definitions[name]; !known {
			document.Definitions[name], some = definition, true
		}
	}
	return some
}
