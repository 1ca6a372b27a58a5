package rpc

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/rpc/internal/dialogue"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

// serveReview reviews the request that comes first on a stream. Its conversions are made by the caller.
func serveReview(impl services.Admission, stream grpc.BidiStreamingServer[pb.ReviewInput, pb.ReviewOutput]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	review, m := impl.Mutate, first.GetMutate()
	if m == nil {
		review, m = impl.Validate, first.GetValidate()
	}
	if m == nil {
		return status.Error(codes.InvalidArgument, "a review begins with its request")
	}
	request := admissionRequestIn(m)
	request.Converter = &remoteConverter{stream: stream}
	answer, err := admissionAnswer(review(stream.Context(), request))
	if err != nil {
		return err
	}
	return stream.Send(&pb.ReviewOutput{Output: &pb.ReviewOutput_Response{Response: answer}})
}

// remoteConverter asks the caller of a review to convert and merge, one object at a time.
type remoteConverter struct {
	mu      sync.Mutex
	stream  grpc.BidiStreamingServer[pb.ReviewInput, pb.ReviewOutput]
	answers dialogue.Answers[*pb.ReviewInput]
}

// Convert implements services.Converter.
func (c *remoteConverter) Convert(ctx context.Context, object []byte, to services.ServedType) ([]byte, error) {
	return c.ask(ctx, &pb.ReviewOutput{Output: &pb.ReviewOutput_Convert{Convert: &pb.Conversion{Object: object, To: servedTypeOut(to)}}})
}

// Merge implements services.Converter. A caller of an earlier release ends the review.
func (c *remoteConverter) Merge(ctx context.Context, object, configuration []byte, of services.ServedType) ([]byte, error) {
	question := &pb.Merging{Object: object, Configuration: configuration, Of: servedTypeOut(of)}
	return c.ask(ctx, &pb.ReviewOutput{Output: &pb.ReviewOutput_Merge{Merge: question}})
}

// ask sends a question to the caller and returns its answer, or the Timeout of ctx.
func (c *remoteConverter) ask(ctx context.Context, question *pb.ReviewOutput) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.stream.Send(question); err != nil {
		return nil, errorIn(ctx, "front door", err)
	}
	m, err := c.answers.Await(ctx, c.stream.Context(), c.stream.Recv)
	if errors.Is(err, io.EOF) {
		return nil, faultf("front door: it has ended the review")
	}
	if err != nil {
		return nil, errorIn(ctx, "front door", err)
	}
	switch m.GetInput().(type) {
	case *pb.ReviewInput_Converted:
		return m.GetConverted(), nil
	case *pb.ReviewInput_Failure:
		return nil, statusIn(m.GetFailure())
	}
	return nil, faultf("front door: it has not answered a question")
}

// review calls Review, and converts and merges objects for admission.
func (c admissionClient) review(ctx context.Context, request *pb.ReviewInput, converter services.Converter) (*pb.AdmissionResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.peer.Review(ctx)
	if err != nil {
		return nil, err
	}
	// A failed Send is always io.EOF; Recv returns its reason.
	if err := stream.Send(request); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	messages := dialogue.Receive(ctx, stream.Recv)
	for {
		m := messages.Next()
		if m.Err != nil {
			return nil, m.Err
		}
		var converted []byte
		switch {
		case m.Value.GetConvert() != nil:
			q := m.Value.GetConvert()
			converted, err = converter.Convert(m.Context, q.GetObject(), servedTypeIn(q.GetTo()))
		case m.Value.GetMerge() != nil:
			q := m.Value.GetMerge()
			converted, err = converter.Merge(m.Context, q.GetObject(), q.GetConfiguration(), servedTypeIn(q.GetOf()))
		case m.Value.GetResponse() == nil:
			return nil, status.Error(codes.Internal, "a review has ended without a response")
		default:
			return m.Value.GetResponse(), nil
		}
		var result pb.ReviewInput
		if err != nil {
			result.Input = &pb.ReviewInput_Failure{Failure: statusOut(services.AsStatus(err))}
		} else {
			result.Input = &pb.ReviewInput_Converted{Converted: converted}
		}
		if err := stream.Send(&result); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
}

func servedTypeOut(t services.ServedType) *pb.ServedType {
	return &pb.ServedType{Group: t.Group, Version: t.Version, Resource: t.Resource, KindGroup: t.KindGroup, KindVersion: t.KindVersion, Kind: t.Kind}
}

func servedTypeIn(m *pb.ServedType) services.ServedType {
	return services.ServedType{Group: m.GetGroup(), Version: m.GetVersion(), Resource: m.GetResource(),
		KindGroup: m.GetKindGroup(), KindVersion: m.GetKindVersion(), Kind: m.GetKind()}
}

var _ services.Converter = (*remoteConverter)(nil)
