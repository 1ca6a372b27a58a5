package rpc

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

var update = flag.Bool("update", false, "add what the contracts have grown by to testdata/contracts.json")

// contracts is the descriptor of the proto file as services of earlier commits know it.
const contracts = "testdata/contracts.json"

// TestContractsOnlyGrow: services of different releases run side by side during an
// upgrade, so that nothing on the wire may be removed or get another meaning.
func TestContractsOnlyGrow(t *testing.T) {
	content, err := os.ReadFile(contracts)
	if err != nil {
		t.Fatal(err)
	}
	var known descriptorpb.FileDescriptorProto
	if err := protojson.Unmarshal(content, &known); err != nil {
		t.Fatal(err)
	}
	now := protodesc.ToFileDescriptorProto(pb.File_portico_proto)
	for _, problem := range breaks(t, &known, now) {
		t.Error(problem)
	}
	switch {
	case t.Failed() || proto.Equal(&known, now):
		return
	case !*update:
		t.Fatal("the contracts have grown: add that with go test ./services/rpc -run TestContractsOnlyGrow -update")
	}
	raw, err := protojson.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, raw, "", " "); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(contracts, append(indented.Bytes(), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestContractsOfTheLastCommit: the file may not forget what it knew, either.
func TestContractsOfTheLastCommit(t *testing.T) {
	content, err := exec.Command("git", "show", "HEAD~1:./"+contracts).Output()
	if err != nil {
		t.Skipf("needs a clone with history: %v", err)
	}
	var earlier descriptorpb.FileDescriptorProto
	if err := protojson.Unmarshal(content, &earlier); err != nil {
		t.Fatal(err)
	}
	for _, problem := range breaks(t, &earlier, protodesc.ToFileDescriptorProto(pb.File_portico_proto)) {
		t.Error(problem)
	}
}

// breaks returns what of the earlier descriptor is missing or different in the later one.
func breaks(t *testing.T, earlier, later *descriptorpb.FileDescriptorProto) (problems []string) {
	t.Helper()
	file := func(p *descriptorpb.FileDescriptorProto) protoreflect.FileDescriptor {
		made, err := protodesc.FileOptions{AllowUnresolvable: true}.New(p, protoregistry.GlobalFiles)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	had, has := facts(file(earlier)), facts(file(later))
	for _, name := range slices.Sorted(keys(had)) {
		switch now, ok := has[name]; {
		case !ok:
			problems = append(problems, fmt.Sprintf("%s is gone", name))
		case now != had[name]:
			problems = append(problems, fmt.Sprintf("%s was %s, and is %s", name, had[name], now))
		}
	}
	return problems
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range m {
			if !yield(name) {
				return
			}
		}
	}
}

// facts is everything in a file that peers rely on: what it is, and what must be true of
// it. Fields and enum values go by their numbers, as on the wire.
func facts(f protoreflect.FileDescriptor) map[string]string {
	all := map[string]string{"package": string(f.Package())}
	messages(all, f.Messages())
	enums(all, f.Enums())
	for i := range f.Services().Len() {
		methods := f.Services().Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			all["rpc "+string(m.FullName())] = fmt.Sprintf("from %s to %s, streams %v %v", m.Input().FullName(), m.Output().FullName(), m.IsStreamingClient(), m.IsStreamingServer())
		}
	}
	return all
}

func messages(all map[string]string, list protoreflect.MessageDescriptors) {
	for i := range list.Len() {
		m := list.Get(i)
		all["message "+string(m.FullName())] = ""
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			what := fmt.Sprintf("%s, %s %s, packed %v, presence %v", f.Name(), f.Cardinality(), f.Kind(), f.IsPacked(), f.HasPresence())
			switch {
			case f.Message() != nil:
				what += " " + string(f.Message().FullName())
			case f.Enum() != nil:
				what += " " + string(f.Enum().FullName())
			}
			if of := f.ContainingOneof(); of != nil {
				what += ", one of " + string(of.Name())
			}
			all[fmt.Sprintf("field %d of %s", f.Number(), m.FullName())] = what
		}
		messages(all, m.Messages()) // the entries of maps, too
		enums(all, m.Enums())
	}
}

func enums(all map[string]string, list protoreflect.EnumDescriptors) {
	for i := range list.Len() {
		values := list.Get(i).Values()
		for j := range values.Len() {
			all[fmt.Sprintf("value %d of %s", values.Get(j).Number(), list.Get(i).FullName())] = string(values.Get(j).Name())
		}
	}
}

// TestBreaksAreFound makes each kind of breaking change.
func TestBreaksAreFound(t *testing.T) {
	find := func(f *descriptorpb.FileDescriptorProto, name string) *descriptorpb.DescriptorProto {
		i := slices.IndexFunc(f.GetMessageType(), func(m *descriptorpb.DescriptorProto) bool { return m.GetName() == name })
		return f.GetMessageType()[i]
	}
	for name, c := range map[string]struct {
		change func(f *descriptorpb.FileDescriptorProto)
		want   string
	}{
		"field removed":    {func(f *descriptorpb.FileDescriptorProto) { m := find(f, "Attempt"); m.Field = m.GetField()[:2] }, "field 3 of portico.v1.Attempt is gone"},
		"field renumbered": {func(f *descriptorpb.FileDescriptorProto) { find(f, "Attempt").Field[2].Number = proto.Int32(9) }, "field 3 of portico.v1.Attempt is gone"},
		"field retyped": {func(f *descriptorpb.FileDescriptorProto) {
			find(f, "Attempt").Field[2].Type = descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()
		}, "field 3 of portico.v1.Attempt was"},
		"field repeated": {func(f *descriptorpb.FileDescriptorProto) {
			find(f, "Attempt").Field[0].Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}, "field 1 of portico.v1.Attempt was"},
		"field of another message": {func(f *descriptorpb.FileDescriptorProto) {
			find(f, "CreateRequest").Field[0].TypeName = proto.String(".portico.v1.Source")
		}, "field 1 of portico.v1.CreateRequest was"},
		"field renamed": {func(f *descriptorpb.FileDescriptorProto) {
			find(f, "Attempt").Field[2].Name, find(f, "Attempt").Field[2].JsonName = proto.String("until"), nil
		}, "field 3 of portico.v1.Attempt was"},
		"value renamed": {func(f *descriptorpb.FileDescriptorProto) { f.EnumType[0].Value[1].Name = proto.String("ELSE") }, "value 1 of"},
		"rpc removed":   {func(f *descriptorpb.FileDescriptorProto) { f.Service[0].Method = f.Service[0].GetMethod()[1:] }, "rpc portico.v1."},
		"rpc retyped": {func(f *descriptorpb.FileDescriptorProto) {
			f.Service[0].Method[0].InputType = proto.String(".portico.v1.Attempt")
		}, "rpc portico.v1."},
		"rpc streams": {func(f *descriptorpb.FileDescriptorProto) { f.Service[0].Method[0].ServerStreaming = proto.Bool(true) }, "rpc portico.v1."},
		"package":     {func(f *descriptorpb.FileDescriptorProto) { f.Service, f.MessageType, f.EnumType = nil, nil, nil }, "is gone"},
		"growth": {func(f *descriptorpb.FileDescriptorProto) {
			m := find(f, "Attempt")
			m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{Name: proto.String("more"), Number: proto.Int32(99),
				Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			earlier := protodesc.ToFileDescriptorProto(pb.File_portico_proto)
			later := proto.CloneOf(earlier)
			c.change(later)
			problems := strings.Join(breaks(t, earlier, later), "\n")
			if (c.want == "") != (problems == "") || !strings.Contains(problems, c.want) {
				t.Errorf("found %q, want %q", problems, c.want)
			}
		})
	}
}
