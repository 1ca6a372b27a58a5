package rpc_test

import (
	"reflect"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/rpc"
)

func TestBusMessagesCarryEveryField(t *testing.T) {
	var change services.Change
	fill(reflect.ValueOf(&change).Elem())
	message, err := rpc.EncodeChange(change)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rpc.DecodeChange(message); err != nil || !reflect.DeepEqual(got, change) {
		t.Errorf("got %+v, %v, want %+v", got, err, change)
	}
	var progress services.Progress
	fill(reflect.ValueOf(&progress).Elem())
	message, err = rpc.EncodeProgress(progress)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rpc.DecodeProgress(message); err != nil || !reflect.DeepEqual(got, progress) {
		t.Errorf("got %+v, %v, want %+v", got, err, progress)
	}
}

func TestBusMessagesAreChecked(t *testing.T) {
	for name, message := range map[string][]byte{"empty": nil, "garbage": {0xff, 0x01, 0x02}} {
		if got, err := rpc.DecodeChange(message); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got, err := rpc.DecodeProgress([]byte{0xff}); err == nil {
		t.Errorf("got %+v", got)
	}
}

// FuzzDecodeChange: decoded changes survive encoding and decoding.
func FuzzDecodeChange(f *testing.F) {
	var change services.Change
	fill(reflect.ValueOf(&change).Elem())
	seed, _ := rpc.EncodeChange(change)
	f.Add(seed)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		change, err := rpc.DecodeChange(message)
		if err != nil {
			return
		}
		again, err := rpc.EncodeChange(change)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rpc.DecodeChange(again); err != nil || !reflect.DeepEqual(canonical(got), canonical(change)) {
			t.Errorf("got %+v, %v, want %+v", got, err, change)
		}
	})
}

// canonical makes what is empty nil: a message may have a map of unknown entries only.
func canonical(c services.Change) services.Change {
	for _, m := range []*map[string]string{&c.Object.Labels, &c.Object.Fields, &c.OldLabels, &c.OldFields} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	for _, b := range []*[]byte{&c.Object.JSON, &c.OldJSON, &c.Trace} {
		if len(*b) == 0 {
			*b = nil
		}
	}
	return c
}
