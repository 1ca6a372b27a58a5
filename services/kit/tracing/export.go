package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"

	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/kit/monotonic"
)

const (
	// maxWaiting bounds the spans that wait for the collector, in the queue and in the
	// batch that is being sent.
	maxWaiting = 4096
	maxBatch   = 512
	batchEvery = time.Second
	// sendWithin bounds one batch, repeated attempts included.
	sendWithin = 5 * time.Second
	// complainEvery is the least time between two lines of the log about failures.
	complainEvery = time.Minute
	// Limits of one span.
	maxAttributes, maxLinks, maxEvents, maxValue = 32, 8, 8, 256
)

// Flags registers the flags of Open.
func Flags(fs *pflag.FlagSet) {
	fs.String("otlp-endpoint", "", "`address` of an OpenTelemetry collector (OTLP over gRPC), as in host:4317 or https://host:4317; without TLS only on this machine. Empty: no traces")
	fs.String("otlp-ca-file", "", "`file` with the certificates of the authorities that sign the collector's certificate; those of the system when empty")
	fs.Float64("trace-sampling", 0, "`share` of the requests to trace, from 0 to 1; only the front door begins traces. Requests of system:masters that are part of a sampled trace are always traced")
}

// Process is what sends spans.
type Process struct {
	Name    string
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Open returns the Tracer that the flags describe; nil if they name no collector. Errors
// begin with the name of the flag.
func Open(fs *pflag.FlagSet, p Process) (*Tracer, error) {
	c := Config{Process: p}
	c.Endpoint, _ = fs.GetString("otlp-endpoint")
	c.CAFile, _ = fs.GetString("otlp-ca-file")
	c.Sampling, _ = fs.GetFloat64("trace-sampling")
	return New(c)
}

// Config says where spans are sent.
type Config struct {
	Process

	// Endpoint is the collector's address for OTLP over gRPC: host:port, or a URL.
	// Connections to other machines use TLS.
	Endpoint string
	// CAFile has the authorities that sign the collector's certificate; empty for those
	// of the system.
	CAFile string
	// Sampling is the share of requests that Tracer.Begin samples, from 0 to 1.
	Sampling float64
}

// New returns a Tracer, nil if there is no endpoint. It does not wait for the collector.
// Errors are about the configuration and begin with the name of the flag.
func New(c Config) (*Tracer, error) {
	if c.Sampling < 0 || c.Sampling > 1 || c.Sampling != c.Sampling {
		return nil, fmt.Errorf("--trace-sampling: %v is not between 0 and 1", c.Sampling)
	}
	if c.Endpoint == "" {
		switch {
		case c.Sampling != 0:
			return nil, errors.New("--trace-sampling has no effect without --otlp-endpoint")
		case c.CAFile != "":
			return nil, errors.New("--otlp-ca-file has no effect without --otlp-endpoint")
		}
		return nil, nil
	}
	options, err := c.connection()
	if err != nil {
		return nil, err
	}
	client, err := otlptracegrpc.New(context.Background(), append(options,
		otlptracegrpc.WithTimeout(sendWithin),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true,
			InitialInterval: 200 * time.Millisecond, MaxInterval: 2 * time.Second, MaxElapsedTime: sendWithin}))...)
	if err != nil {
		return nil, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return newTracer(c.options(client), c.Sampling), nil
}

// connection returns the options about the collector's address.
func (c Config) connection() ([]otlptracegrpc.Option, error) {
	address, secure, err := target(c.Endpoint)
	if err != nil {
		return nil, err
	}
	options := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(address)}
	if !secure {
		if c.CAFile != "" {
			return nil, errors.New("--otlp-ca-file needs --otlp-endpoint with https")
		}
		return append(options, otlptracegrpc.WithInsecure()), nil
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		authorities, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--otlp-ca-file: %w", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("--otlp-ca-file: %s contains no certificate", c.CAFile)
		}
	}
	return append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(trust))), nil
}

// target reads an endpoint. Without a scheme it is secure unless it is on this machine.
func target(value string) (address string, secure bool, err error) {
	scheme, address, found := strings.Cut(value, "://")
	if !found {
		scheme, address = "", value
	}
	u, err := url.Parse("//" + address)
	if err != nil || u.Hostname() == "" || u.Port() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", false, fmt.Errorf("--otlp-endpoint: %q is not of the form https://host:4317", value)
	}
	address = net.JoinHostPort(u.Hostname(), u.Port())
	local := endpoint.Local(u.Hostname())
	switch {
	case scheme == "https", scheme == "" && !local:
		return address, true, nil
	case scheme != "http" && scheme != "":
		return "", false, fmt.Errorf("--otlp-endpoint: %q is not of the form https://host:4317", value)
	case !local:
		return "", false, fmt.Errorf("--otlp-endpoint: %s is on another machine and not encrypted: use https://%s", value, address)
	}
	return address, false, nil
}

// limits bounds what one span holds.
var limits = trace.SpanLimits{AttributeValueLengthLimit: maxValue, AttributeCountLimit: maxAttributes,
	EventCountLimit: maxEvents, LinkCountLimit: maxLinks, AttributePerEventCountLimit: maxEvents, AttributePerLinkCountLimit: maxEvents}

// options are those of what makes spans and sends them to the client. It samples whatever
// is begun: Tracer.Begin has decided before.
func (c Config) options(client trace.SpanExporter) []trace.TracerProviderOption {
	q := &queue{log: c.Log, spans: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portico_trace_spans_total",
		Help: "Spans of sampled requests, by outcome: sent, failed to be sent, dropped because the queue was full."}, []string{"outcome"})}
	c.Metrics.MustRegister(q.spans, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "portico_trace_spans_waiting",
		Help: "Spans in the queue."}, func() float64 { return float64(q.waiting.Load()) }))
	q.SpanProcessor = trace.NewBatchSpanProcessor(sender{client, q}, trace.WithMaxQueueSize(maxWaiting),
		trace.WithMaxExportBatchSize(maxBatch), trace.WithBatchTimeout(batchEvery), trace.WithExportTimeout(sendWithin))
	host, _ := os.Hostname()
	return []trace.TracerProviderOption{trace.WithSpanProcessor(q), trace.WithSampler(trace.AlwaysSample()), trace.WithRawSpanLimits(limits),
		trace.WithResource(resource.NewSchemaless(attribute.String("service.name", c.Name),
			attribute.String("service.instance.id", host), attribute.String("host.name", host)))}
}

// queue bounds the spans that wait for the collector.
type queue struct {
	trace.SpanProcessor
	spans   *prometheus.CounterVec
	log     *slog.Logger
	waiting atomic.Int64
	said    atomic.Int64 // when a failure was last logged, in Unix nanoseconds
}

// OnEnd implements trace.SpanProcessor. It never waits.
func (q *queue) OnEnd(s trace.ReadOnlySpan) {
	if q.waiting.Add(1) > maxWaiting {
		q.waiting.Add(-1)
		q.spans.WithLabelValues("dropped").Inc()
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// sender counts the outcomes of spans that leave the queue.
type sender struct {
	trace.SpanExporter
	queue *queue
}

// ExportSpans implements trace.SpanExporter. A failure is counted, and logged now and
// then.
func (s sender) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	q := s.queue
	q.waiting.Add(-int64(len(spans)))
	outcome := "sent"
	if err != nil {
		outcome = "failed"
		q.complain(err)
	}
	q.spans.WithLabelValues(outcome).Add(float64(len(spans)))
	return nil
}

func (q *queue) complain(err error) {
	now, said := monotonic.Now(), q.said.Load()
	if now-said >= int64(complainEvery) && q.said.CompareAndSwap(said, now) {
		q.log.Warn("sending spans failed", "error", err)
	}
}

var (
	_ trace.SpanProcessor = (*queue)(nil)
	_ trace.SpanExporter  = sender{}
)
