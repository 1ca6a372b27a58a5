package issuers

import (
	"encoding/json"
	"errors"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/lazy"

	"github.com/portico-platform/portico/services"
)

// claimValues returns the variable claims of expressions. A claim is decoded when it is read.
func claimValues(c claims) *lazy.MapValue {
	all := lazy.NewMapValue(types.NewObjectType("kubernetes.claims"))
	for name, raw := range c {
		all.Append(name, func(*lazy.MapValue) ref.Val {
			var value any
			if err := json.Unmarshal(raw, &value); err != nil {
				return types.NewErr("claim %q: %v", name, err)
			}
			return valueOf(value)
		})
	}
	return all
}

// userValues returns the variable user of expressions.
func userValues(u services.UserInfo) *lazy.MapValue {
	all := lazy.NewMapValue(types.NewObjectType("kubernetes.UserInfo"))
	for name, value := range map[string]any{"username": u.Name, "uid": u.UID, "groups": u.Groups, "extra": u.Extra} {
		all.Append(name, func(*lazy.MapValue) ref.Val { return valueOf(value) })
	}
	return all
}

func valueOf(native any) ref.Val { return spelled(types.DefaultTypeAdapter.NativeToValue(native)) }

// spelled makes the members of a value known by the names that expressions spell with escapes,
// such as a__dot__b for a.b.
func spelled(value ref.Val) ref.Val {
	switch v := value.(type) {
	case traits.Mapper:
		return members{v}
	case traits.Lister:
		return items{v}
	}
	return value
}

// members is a map with such names.
type members struct{ traits.Mapper }

// Find implements traits.Mapper.
func (m members) Find(key ref.Val) (ref.Val, bool) {
	if name, ok := key.(types.String); ok {
		if plain, ok := cel.Unescape(string(name)); ok {
			key = types.String(plain)
		}
	}
	value, found := m.Mapper.Find(key)
	return spelled(value), found
}

// Get implements traits.Indexer.
func (m members) Get(key ref.Val) ref.Val {
	value, found := m.Find(key)
	if !found {
		return m.Mapper.Get(key) // the error
	}
	return value
}

// Contains implements traits.Container.
func (m members) Contains(key ref.Val) ref.Val {
	_, found := m.Find(key)
	return types.Bool(found)
}

// items is a list of such maps.
type items struct{ traits.Lister }

// Get implements traits.Indexer.
func (l items) Get(index ref.Val) ref.Val { return spelled(l.Lister.Get(index)) }

// texts returns a result that is a string or a list of strings. Empty ones count as missing,
// and so does null.
func texts(value ref.Val) (all []string, err error) {
	add := func(item ref.Val) error {
		text, ok := item.(types.String)
		if !ok {
			return errors.New("the expression does not return a string or a list of strings")
		}
		if text != "" {
			all = append(all, string(text))
		}
		return nil
	}
	switch v := value.(type) {
	case types.Null:
		return nil, nil
	case traits.Lister:
		for i := v.Iterator(); i.HasNext() == types.True; {
			if err := add(i.Next()); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return all, add(value)
}
