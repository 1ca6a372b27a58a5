package protobuf

import (
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/tree"
)

const (
	// light is the size up to which a message is decoded without an estimate of its memory, which would take an
	// eighth of the time of decoding: what it takes is a few megabytes, and its depth is no danger. Most pods
	// are as small.
	light = 4 << 10
	// heaviest is the limit on what decoding a message takes, in bytes. An empty message in a list
	// is two bytes, and takes thousands when it is a container.
	heaviest = 128 << 20
	// perMessage is what the JSON object of a message takes, at least.
	perMessage = 512
	// perNumber is what a number takes in a list, which grows by copies, and then in a list of any
	// values.
	perNumber = 40
)

// weight describes the memory of the decoded fields of a message.
type weight map[protowire.Number]fieldWeight

type fieldWeight struct {
	each   int    // bytes of each value
	number bool   // a value may be many numbers, each in a byte or more
	fields weight // nil unless the value is a message
}

// weigher caches the weights of Go types.
type weigher map[reflect.Type]weight

// weigh returns the weight of a struct type. Types that contain themselves end at the map that is
// being filled.
func (all weigher) weigh(t reflect.Type) weight {
	if w, ok := all[t]; ok {
		return w
	}
	w := weight{}
	all[t] = w
	for i := range t.NumField() {
		f := t.Field(i)
		parts := strings.Split(f.Tag.Get("protobuf"), ",")
		if len(parts) < 2 {
			continue
		}
		number, err := strconv.Atoi(parts[1])
		if err != nil {
			continue
		}
		value := fieldWeight{each: perMessage}
		switch of := f.Type; of.Kind() {
		case reflect.Struct:
			value.fields = all.value(of) // within its parent
		case reflect.Pointer, reflect.Slice:
			value.each += 2 * int(of.Elem().Size()) // a list grows by copies
			value.fields = all.value(of.Elem())
			if of.Elem().Kind() != reflect.Struct {
				value.each -= perMessage
			}
			if kind := of.Elem().Kind(); of.Kind() == reflect.Slice && (kind == reflect.Int32 || kind == reflect.Int64) {
				value.each, value.number = perNumber, true
			}
		case reflect.Map:
			value.each += int(of.Elem().Size())
			if fields := all.value(of.Elem()); fields != nil {
				value.fields = weight{entryValue: {fields: fields}}
			}
		default:
			continue
		}
		w[protowire.Number(number)] = value
	}
	return w
}

// value returns the weight of a value's type, nil unless it is a message of fields.
func (all weigher) value(t reflect.Type) weight {
	if _, isLeaf := leaves[t]; isLeaf || t.Kind() != reflect.Struct {
		return nil
	}
	return all.weigh(t)
}

// scale computes the weight of one message.
type scale struct {
	total int // bytes
	depth int // of the message that is being weighed
}

// add adds what decoding a message takes. It returns errHeavy, or a tree.DepthError for one that is
// nested too deeply: the generated code would need a stack without bound, at whose limit the
// process ends. Any other error is that of a message that cannot be decoded.
func (s *scale) add(w weight, message []byte) error {
	if s.depth++; s.depth > tree.MaxDepth {
		return tree.DepthError{Limit: tree.MaxDepth}
	}
	defer func() { s.depth-- }()
	return values(message, func(n protowire.Number, kind protowire.Type, value []byte) error {
		f, ok := w[n]
		if !ok || kind != protowire.BytesType && !f.number {
			return nil
		}
		each := f.each
		if f.number {
			each *= max(1, len(value))
		}
		if s.total += each; s.total > heaviest {
			return errHeavy
		}
		if f.fields == nil {
			return nil
		}
		return s.add(f.fields, value)
	})
}

// errHeavy is RequestEntityTooLarge (413).
var errHeavy = limit.Exceeded(limit.Body, services.TooLarge("The Protobuf message has too many parts: decoding it takes more than %d bytes", heaviest))

// checkWeight returns the error of a message that must not be decoded, or that of charge, which is
// called with what decoding it takes.
func (m *Message) checkWeight(body []byte, charge func(int) error) error {
	if len(body) <= light {
		return nil
	}
	s := &scale{}
	if err := s.add(m.weight, body); err != nil || charge == nil {
		return err
	}
	return charge(s.total)
}
