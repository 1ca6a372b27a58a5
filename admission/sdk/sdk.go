// Package sdk is what an admission service is built with: a program that the API asks
// before it stores an object, and that may change or refuse the object. The author writes
// one or two functions; Main serves them as the contract services.Admission over gRPC with
// mutual TLS and, on request, as AdmissionReview over HTTPS for kube-apiserver.
//
// The package decides how a service is reached, how long and how large a review may be, and
// that an error or panic of one review fails only that review. It never decides whether an
// object is admitted. docs/admission-protocol.md is the protocol. It serves section
// "Admission plugins" of the specification.
package sdk

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/portico-platform/portico/services"
)

// Handler reviews one request. It returns nil to admit it, and the error of Deny, Forbid or
// Invalid to refuse it. Any other error means that the handler cannot decide: the caller
// then applies the failure policy of the service. A handler is called by many goroutines at
// once, respects the deadline of ctx, and has no side effects when r.DryRun is set.
type Handler func(ctx context.Context, r *Review) error

// Service is an admission service.
type Service struct {
	// Name is the name in logs and in the local certificate.
	Name string
	// Mutate may change the object (Review.Set) or refuse it. It is called again when a
	// later plugin has changed the object, so its changes must be idempotent. nil changes
	// nothing.
	Mutate Handler
	// Validate may refuse the final object. nil admits all.
	Validate Handler
	// Flags registers the service's own flags.
	Flags func(*flag.FlagSet)
	// Start prepares the service before its first review. What it leaves running ends with
	// ctx. An error ends the process.
	Start func(ctx context.Context) error
	// Ready returns why the service cannot decide at the moment, for example while a cache
	// is empty. Until it returns nil, reviews fail with 503 and health checks fail. It is
	// called for every review, so it must be fast.
	Ready func() error
}

// Request is the reviewed request.
type Request = services.AdmissionRequest

// Operations of a Request.
const (
	Create  = services.OperationCreate
	Update  = services.OperationUpdate
	Delete  = services.OperationDelete
	Connect = services.OperationConnect
)

// Main runs the service as a program, with the flags of the command line, until SIGINT or
// SIGTERM. The exit status is 0 after a signal, 1 after a failure and 2 for a usage error.
func Main(s Service) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, s, os.Args[1:], os.Stderr))
}

// command runs the service with arguments and returns the exit status.
func command(ctx context.Context, s Service, args []string, errs io.Writer) int {
	flags := flag.NewFlagSet(s.Name, flag.ContinueOnError)
	flags.SetOutput(errs)
	o := DefaultOptions()
	o.Flags(flags)
	if s.Flags != nil {
		s.Flags(flags)
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errs, "%s: unexpected argument %q\n", s.Name, flags.Arg(0))
		return 2
	}
	switch err := Run(ctx, s, o); {
	case errors.Is(err, ErrUsage):
		fmt.Fprintf(errs, "%s: %v\n", s.Name, err)
		return 2
	case err != nil:
		fmt.Fprintf(errs, "%s: %v\n", s.Name, err)
		return 1
	}
	return 0
}

// Run serves until ctx ends, and then until the reviews in progress have ended or
// o.DrainTimeout has passed.
func Run(ctx context.Context, s Service, o Options) error {
	server, err := Listen(s, o)
	if err != nil {
		return err
	}
	return server.Serve(ctx)
}
