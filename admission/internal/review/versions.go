package review

import (
	"bytes"
	"context"

	"github.com/portico-platform/portico/services"
)

// conversion holds the objects of a review in another version.
type conversion struct {
	of, object []byte // object is of, converted
	old        []byte
}

// Own is the type of the request, with the kind of its objects.
func (r *Review) Own() services.ServedType {
	t := services.ServedType{Group: r.Group, Version: r.Version, Resource: r.Resource, KindGroup: r.Group, KindVersion: r.Version, Kind: r.Kind}
	if r.KindVersion != "" {
		t.KindGroup, t.KindVersion = r.KindGroup, r.KindVersion
	}
	return t
}

// Converts reports whether the objects have to be converted for a type: the body of a
// subresource may be the same in all versions.
func (r *Review) Converts(t services.ServedType) bool {
	own := r.Own()
	return t.KindGroup != own.KindGroup || t.KindVersion != own.KindVersion || t.Kind != own.Kind
}

// As returns the current object and the old one in the version of a type that serves them;
// nil where the operation has none. The error is services.ErrNoConverter if that needs a
// converter, and the request has none.
func (r *Review) As(ctx context.Context, t services.ServedType) (object, old []byte, err error) {
	current, err := r.Current()
	if err != nil || !r.Converts(t) {
		return current, r.OldObject, err
	}
	c, known := r.converted[t]
	if !known {
		c = &conversion{}
		if c.old, err = r.convert(ctx, r.OldObject, t); err != nil {
			return nil, nil, err
		}
		r.converted[t] = c
	}
	if !bytes.Equal(c.of, current) {
		if object, err = r.convert(ctx, current, t); err != nil {
			return nil, nil, err
		}
		c.of, c.object = current, object
	}
	return c.object, c.old, nil
}

// ReplaceAs sets the current object, given in the version of a type that serves it.
func (r *Review) ReplaceAs(ctx context.Context, t services.ServedType, object []byte) error {
	if !r.Converts(t) {
		r.Replace(object)
		return nil
	}
	own, err := r.convert(ctx, object, r.Own())
	if err != nil {
		return err
	}
	r.Replace(own)
	r.converted[t].of, r.converted[t].object = own, object
	return nil
}

func (r *Review) convert(ctx context.Context, object []byte, t services.ServedType) ([]byte, error) {
	if r.Converter == nil {
		return nil, services.ErrNoConverter
	}
	if len(object) == 0 {
		return nil, nil
	}
	return r.Converter.Convert(ctx, object, t)
}
