package replicas

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

const (
	// growth is how many times larger than its request a response may be, and notes what is added to that
	// for refusals, warnings and annotations, in bytes: a service may change the object, and any number of calls
	// may be in progress.
	growth = 4
	notes  = 512 << 10
)

// bounded is a connection to a service whose responses are weighed before they are decoded.
type bounded struct {
	grpc.ClientConnInterface
	pays ledger.Account
}

// Invoke implements grpc.ClientConnInterface.
func (b bounded) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	most := ledger.ServiceAnswer.Bytes
	if request, ok := args.(protoadapt.MessageV2); ok {
		most = min(most, int64(growth*protobuf.Size(request)+notes))
	}
	var hold ledger.Hold
	defer hold.Release()
	codec := &weighing{CodecV2: encoding.GetCodecV2(proto.Name), pays: b.pays, hold: &hold}
	err := b.ClientConnInterface.Invoke(ctx, method, args, reply, append(options, grpc.ForceCodecV2(codec), grpc.MaxCallRecvMsgSize(int(most)))...)
	if codec.full == nil {
		return err
	}
	refused := services.AsStatus(codec.full) // a refusal, whatever the failure policy is: nobody may get past the service by keeping it busy
	detailed, err := status.New(codes.ResourceExhausted, refused.Message).WithDetails(
		&pb.Status{Code: refused.Code, Reason: refused.Reason, Message: refused.Message, Details: &pb.StatusDetails{RetryAfterSeconds: refused.Details.RetryAfterSeconds}})
	if err != nil {
		return err
	}
	return detailed.Err()
}

// weighing decodes the response of one call.
type weighing struct {
	encoding.CodecV2
	pays ledger.Account
	hold *ledger.Hold
	full error // the response was not decoded, because the share of the service is used up
}

// Unmarshal implements encoding.CodecV2.
func (w *weighing) Unmarshal(data mem.BufferSlice, into any) error {
	message, ok := into.(protoadapt.MessageV2)
	if !ok {
		return fmt.Errorf("%T is no message", into)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	weight, err := ledger.ServiceAnswer.CheckProtobuf(whole.ReadOnlyData(), message.ProtoReflect().Descriptor())
	if err != nil {
		return err
	}
	if err := w.pays.Grow(w.hold, weight); err != nil {
		w.full = err
		return err
	}
	return w.CodecV2.Unmarshal(data, into)
}
