package lossy

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"
)

// Streams are the streams of a method of a gRPC client, which can hang as if their server did: the
// connection lives, and nothing arrives. Other calls are not affected.
type Streams struct {
	// Method is the end of the full name of the method.
	Method string

	mu   sync.Mutex
	open []*stream // all that were ever opened
	next int       // how many of the next ones hang
}

// Option returns the option of the client's connection.
func (s *Streams) Option() grpc.DialOption { return grpc.WithChainStreamInterceptor(s.intercept) }

// Hang lets the open streams hang, and as many of those that are opened later.
func (s *Streams) Hang(next int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.open {
		one.hangs = true
	}
	s.next = next
}

// Left returns how many streams are still to be opened that hang.
func (s *Streams) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

func (s *Streams) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	opened, err := next(ctx, desc, conn, method, options...)
	if err != nil || !strings.HasSuffix(method, s.Method) {
		return opened, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &stream{ClientStream: opened, of: s, hangs: s.next > 0}
	s.next = max(0, s.next-1)
	s.open = append(s.open, one)
	return one, nil
}

type stream struct {
	grpc.ClientStream
	of    *Streams
	hangs bool
}

// RecvMsg implements grpc.ClientStream.
func (s *stream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	s.of.mu.Lock()
	hangs := s.hangs
	s.of.mu.Unlock()
	if hangs && err == nil {
		<-s.Context().Done()
		return s.Context().Err()
	}
	return err
}
