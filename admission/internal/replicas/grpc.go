package replicas

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/health" // checks what healthy says
	"google.golang.org/grpc/keepalive"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run/breaker"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/locate"
	"github.com/portico-platform/portico/services/rpc"
	"github.com/portico-platform/portico/services/rpc/window"
)

const (
	// resolveEvery is how often names are resolved again, lookEvery how often the endpoints of
	// a Service are read, which costs no query of another system, and retryEvery is for both
	// while they fail.
	resolveEvery = 5 * time.Second
	lookEvery    = 500 * time.Millisecond
	retryEvery   = 500 * time.Millisecond
	resolveIn    = 5 * time.Second
	// maxTrailer bounds what a service sends beside its response: the Status of a refusal.
	maxTrailer = 64 << 10
)

// healthy is the gRPC service config: a connection is ready if the health service of the
// other side says so, or if there is no such service.
const healthy = `{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""},
	"methodConfig": [{"name": [{}], "waitForReady": true}]}`

// follow resolves the addresses of the endpoint until ctx ends.
func (p *Pool) follow(ctx context.Context) {
	every := resolveEvery
	if p.config.Endpoint.Service != nil {
		every = lookEvery
	}
	for first := true; ; first = false {
		wait := every
		if err := p.resolve(ctx); err != nil {
			wait = retryEvery
			p.mu.Lock()
			p.problem = err.Error()
			p.mu.Unlock()
		}
		if first {
			close(p.resolved)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// resolve makes the replicas those that the endpoint has now. The error is that of the
// first name that has no address; the replicas then stay.
func (p *Pool) resolve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resolveIn)
	defer cancel()
	found := map[string]func() (target, error){}
	add := func(hostPort, serverName string) error {
		host, port, err := net.SplitHostPort(hostPort)
		if err != nil {
			return err
		}
		number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
		if err != nil {
			return err
		}
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return err
		}
		for _, a := range addresses {
			if err := p.config.Clients.Check(netip.AddrPortFrom(a, uint16(number))); err != nil {
				return err
			}
			address := net.JoinHostPort(a.Unmap().String(), port)
			found[address] = func() (target, error) { return p.dial(address, serverName) }
		}
		return nil
	}
	if s := p.config.Endpoint.Service; s != nil {
		r := locate.Reference{Namespace: s.Namespace, Name: s.Name, Port: s.Port}
		replicas, err := p.config.Services.Replicas(ctx, r)
		if err != nil {
			return err
		}
		for _, at := range replicas {
			if err := add(at, r.ServerName()); err != nil {
				return err
			}
		}
	}
	for _, hostPort := range p.config.Endpoint.Addresses {
		host, _, _ := net.SplitHostPort(hostPort)
		if err := add(hostPort, host); err != nil {
			return err
		}
	}
	if ctx.Err() != nil { // closed meanwhile
		return ctx.Err()
	}
	p.set(found)
	p.mu.Lock()
	p.problem = ""
	p.mu.Unlock()
	return nil
}

// grpcTarget is a connection to one address.
type grpcTarget struct {
	conn   *grpc.ClientConn
	cancel context.CancelFunc
	client services.Admission
	name   string // of the service
	// batches are by phase; nil if the service accepts none.
	batches map[Phase]*batcher
}

// tlsConfig returns how to connect to a server of that name.
func (c *Config) tlsConfig(serverName string) *tls.Config {
	made := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName, GetClientCertificate: c.Certificate}
	if c.Trust.ServerName != "" {
		made.ServerName = c.Trust.ServerName
	}
	if len(c.Trust.CABundle) > 0 {
		made.RootCAs = x509.NewCertPool()
		made.RootCAs.AppendCertsFromPEM(c.Trust.CABundle)
	}
	return made
}

// dial opens a connection, which stays open, and is closed when the other side falls
// silent.
func (p *Pool) dial(address, serverName string) (target, error) {
	secured := credentials.NewTLS(p.config.tlsConfig(serverName))
	watch := breaker.New(breaker.Config{Service: address, Credentials: secured,
		Armed: func() bool { return time.Since(p.opened) > startFor }, Repeatable: func(string) bool { return true }})
	conn, err := grpc.NewClient("passthrough:///"+address, append(append(window.Client(), watch.Options()...),
		grpc.WithTransportCredentials(secured),
		grpc.WithDefaultServiceConfig(healthy),
		grpc.WithIdleTimeout(0),
		grpc.WithMaxHeaderListSize(maxTrailer),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}))...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	conn.Connect()
	go watch.Watch(ctx, conn)
	over := bounded{tracing.Conn(watch.Conn(conn)), ledger.Account{Ledger: p.config.Ledger, Owner: ledger.Owner{Kind: ledger.AdmissionService, Name: p.config.Name}}}
	t := &grpcTarget{conn: conn, cancel: cancel, client: rpc.NewAdmission(over), name: p.config.Name}
	if p.config.Batch != nil {
		t.batch(rpc.NewAdmissionBatch(over), p.config)
	}
	return t, nil
}

// batch makes the target send batches.
func (t *grpcTarget) batch(client services.AdmissionBatch, c Config) {
	t.batches = map[Phase]*batcher{}
	for phase, call := range map[Phase]func(context.Context, []services.AdmissionRequest) ([]services.AdmissionResult, error){
		Mutate: client.MutateBatch, Validate: client.ValidateBatch} {
		t.batches[phase] = &batcher{name: c.Name, limits: *c.Batch, sent: c.Batched, call: call,
			single: func(ctx context.Context, r services.AdmissionRequest) (Answer, error) { return t.single(ctx, phase, r) }}
	}
}

func (t *grpcTarget) ready() bool { return t.conn.GetState() == connectivity.Ready }

func (t *grpcTarget) close() {
	t.cancel()
	_ = t.conn.Close()
}

// ask implements target. A Status of the service with a code below 500 is a refusal. A trial
// is not part of a batch, so that it says nothing but what it was made for.
func (t *grpcTarget) ask(ctx context.Context, q question) (Answer, error) {
	if b := t.batches[q.phase]; b != nil && !q.trial {
		return b.ask(ctx, q.request)
	}
	return t.single(ctx, q.phase, q.request)
}

func (t *grpcTarget) single(ctx context.Context, phase Phase, r services.AdmissionRequest) (Answer, error) {
	call := t.client.Validate
	if phase == Mutate {
		call = t.client.Mutate
	}
	response, err := call(ctx, r)
	return answerOf(t.name, r, services.AdmissionResult{Response: response, Err: err})
}

// answerOf checks a result of the contract Admission.
func answerOf(name string, r services.AdmissionRequest, result services.AdmissionResult) (Answer, error) {
	response := result.Response
	a := Answer{Warnings: response.Warnings, Annotations: response.AuditAnnotations}
	if result.Err == nil {
		if len(response.Object) > 0 {
			a.Object = response.Object
		}
		return a, checkObject(r, a.Object)
	}
	status := services.AsStatus(result.Err)
	switch {
	case status.Code == http.StatusGatewayTimeout: // who notices first is a matter of chance
		return Answer{}, services.Timeout("it has not responded in time")
	case status.Code >= http.StatusInternalServerError:
		return Answer{}, result.Err
	case status.Code < http.StatusBadRequest:
		return Answer{}, fmt.Errorf("it refused with status code %d, which is no error", status.Code)
	}
	refusal := *status
	refusal.Message = fmt.Sprintf("admission service %q denied the request: %s", name, status.Message)
	a.Refusal = trimmed(&refusal)
	return a, nil
}
