package sdk_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/admission/sdk/localcert"
	"github.com/portico-platform/portico/admission/sdk/sdktest"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/rpc"
)

// site is a served service with its certificates.
type site struct {
	*sdk.Server
	authority *localcert.Authority
	files     localcert.Files
	stop      func() error
}

// newSite serves on free ports. change changes the options.
func newSite(t *testing.T, s sdk.Service, change func(*sdk.Options)) *site {
	t.Helper()
	authority, err := localcert.New()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &site{authority: authority, files: localcert.Files{CA: filepath.Join(dir, "ca"), Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}}
	p.install(t, authority, "127.0.0.1", "first")
	o := sdk.DefaultOptions()
	o.Address, o.ReviewAddress, o.StatusAddress = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	o.CertFile, o.KeyFile, o.ClientCAFile = p.files.Cert, p.files.Key, p.files.CA
	o.Log = slog.New(slog.DiscardHandler)
	if change != nil {
		change(&o)
	}
	if p.Server, err = sdk.Listen(s, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx) }()
	p.stop = func() error {
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		default: // the test has stopped it, or it ends with the process
		}
	})
	return p
}

// install writes the certificate of the site and its CA.
func (p *site) install(t *testing.T, a *localcert.Authority, names ...string) {
	t.Helper()
	cert, key, err := a.Issue(names...)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{p.files.CA: a.CA, p.files.Cert: cert, p.files.Key: key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// trust returns the TLS configuration of a caller whose certificate has these names.
func trust(t *testing.T, server, caller *localcert.Authority, names ...string) *tls.Config {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(server.CA)
	if caller == nil {
		return config
	}
	cert, key, err := caller.Issue(names...)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config
}

func dial(t *testing.T, address string, config *tls.Config) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (p *site) caller(t *testing.T) services.Admission {
	t.Helper()
	return rpc.NewAdmission(dial(t, p.Address, trust(t, p.authority, p.authority, "admission")))
}

func (p *site) get(t *testing.T, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + p.StatusAddress + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

const configMapA = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: blue}}`

// colors is a service whose decisions depend on the color of a ConfigMap.
func colors() sdk.Service {
	color := func(r *sdk.Review) (string, error) {
		if r.Resource != "configmaps" || r.Object == nil || r.Operation == sdk.Connect {
			return "", nil
		}
		var c configMap
		err := r.Decode(&c)
		return c.Data["color"], err
	}
	return sdk.Service{
		Name: "colors",
		Mutate: func(_ context.Context, r *sdk.Review) error {
			if c, err := color(r); err != nil || c != "navy" {
				return err
			}
			r.Warn("navy becomes blue")
			return r.Set("blue", "data", "color")
		},
		Validate: func(ctx context.Context, r *sdk.Review) error {
			c, err := color(r)
			if err != nil {
				return err
			}
			switch c {
			case "red":
				r.Audit("color", c)
				return r.Invalid(sdk.InvalidField("data.color", "%q is not allowed", c))
			case "panic":
				panic("a bug")
			case "slow":
				<-ctx.Done()
			case "late":
				<-ctx.Done()
				return errors.New("a late answer")
			case "broken":
				return errors.New("the database is away")
			}
			return nil
		},
	}
}

func colored(color string) sdk.Request {
	return sdktest.Create(strings.Replace(configMapA, "blue", color, 1))
}

func TestContract(t *testing.T) {
	sdktest.Contract(t, func(*testing.T) sdk.Service { return colors() },
		sdktest.Example{Admitted: []sdk.Request{colored("blue"), colored("navy"), sdktest.Delete(configMapA)}, Refused: []sdk.Request{colored("red")}})
}

// TestAFailureIsOfItsRequestOnly: panics, errors and timeouts fail with 5xx, and the service
// works on.
func TestAFailureIsOfItsRequestOnly(t *testing.T) {
	caller := newSite(t, colors(), nil).caller(t)
	hurried := newSite(t, colors(), func(o *sdk.Options) { o.Timeout = 50 * time.Millisecond }).caller(t)
	for color, want := range map[string]struct {
		of      services.Admission
		code    int32
		message string
	}{
		"panic":  {caller, 500, "Internal error occurred: the admission service panicked"},
		"broken": {caller, 500, "Internal error occurred: the database is away"},
		"slow":   {hurried, 504, "Timeout: colors has not decided in time"},
		"late":   {hurried, 504, "Timeout: colors has not decided in time"},
		"red":    {caller, 422, `ConfigMap "a" is invalid: data.color: Invalid value: "red" is not allowed`},
	} {
		got := sdktest.Review(t.Context(), want.of, colored(color))
		if got.Err == nil || got.Err.Code != want.code || got.Err.Message != want.message {
			t.Errorf("%s: %+v", color, got.Err)
		}
		again := sdktest.Review(t.Context(), want.of, colored("navy"))
		// On a busy machine the hurried site has no time for this one either, now and then.
		for end := time.Now().Add(time.Minute); want.of == hurried && again.Err != nil && again.Err.Code == 504 && time.Now().Before(end); {
			again = sdktest.Review(t.Context(), hurried, colored("navy"))
		}
		if again.Err != nil || !again.Changed || len(again.Warnings) != 1 {
			t.Errorf("after %s: %+v", color, again)
		}
	}
	if got := sdktest.Review(t.Context(), caller, colored("red")); got.Audit["color"] != "red" {
		t.Errorf("annotations of a refusal: %v", got.Audit)
	}
}

func TestTheDeadlineOfTheCallerReachesTheHandler(t *testing.T) {
	left := make(chan time.Duration, 1)
	caller := newSite(t, sdk.Service{Name: "deadline", Validate: func(ctx context.Context, _ *sdk.Review) error {
		deadline, _ := ctx.Deadline()
		left <- time.Until(deadline)
		return nil
	}}, nil).caller(t)
	// Without one the handler would have the 30 s of the options.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if got := sdktest.Review(ctx, caller, colored("blue")); got.Err != nil {
		t.Fatal(got.Err)
	}
	if got := <-left; got <= 0 || got > 20*time.Second {
		t.Errorf("the handler has %v", got)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	p := newSite(t, colors(), func(o *sdk.Options) { o.MaxRequestBytes = 64 << 10 })
	big := colored(strings.Repeat("x", 128<<10))
	got := sdktest.Review(t.Context(), p.caller(t), big)
	if got.Err == nil || !strings.Contains(got.Err.Message, "received message larger than max") {
		t.Errorf("%+v", got.Err)
	}
	response := p.post(t, "/validate", "application/json", `{"x":"`+strings.Repeat("x", 128<<10)+`"}`)
	if response.code != http.StatusRequestEntityTooLarge {
		t.Errorf("%+v", response)
	}
}

func TestABusyServiceFailsQuickly(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	caller := sdk.Admission(sdk.Service{Name: "busy", Validate: func(context.Context, *sdk.Review) error {
		entered <- struct{}{}
		<-leave
		return nil
	}}, sdk.Options{MaxInFlight: 1, Timeout: time.Minute})
	first := make(chan *services.Status, 1)
	go func() { first <- sdktest.Review(context.Background(), caller, colored("blue")).Err }()
	<-entered
	if got := sdktest.Review(t.Context(), caller, colored("blue")); got.Err == nil || got.Err.Code != 503 || got.Err.Message != "busy is reviewing 1 requests, which is its limit" {
		t.Errorf("%+v", got.Err)
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestCallersNeedACertificate(t *testing.T) {
	p := newSite(t, colors(), func(o *sdk.Options) { o.AllowedCallers = []string{"admission"} })
	other, err := localcert.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		config  *tls.Config
		allowed bool
	}{
		"the allowed name":  {trust(t, p.authority, p.authority, "admission"), true},
		"a further name":    {trust(t, p.authority, p.authority, "portico", "admission"), true},
		"no certificate":    {trust(t, p.authority, nil), false},
		"another authority": {trust(t, p.authority, other, "admission"), false},
		"another name":      {trust(t, p.authority, p.authority, "store"), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := sdktest.Review(t.Context(), rpc.NewAdmission(dial(t, p.Address, x.config)), colored("blue"))
			if (got.Err == nil) != x.allowed {
				t.Errorf("got %v", got.Err)
			}
		})
	}
}

func TestCertificatesAreReadAgain(t *testing.T) {
	p := newSite(t, colors(), nil)
	served := func(a *localcert.Authority) (string, error) {
		conn, err := tls.Dial("tcp", p.Address, trust(t, a, a, "admission"))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].DNSNames[0], nil
	}
	if name, err := served(p.authority); name != "first" {
		t.Fatal(name, err)
	}
	next, err := localcert.New()
	if err != nil {
		t.Fatal(err)
	}
	p.install(t, next, "127.0.0.1", "second")
	if name, err := served(next); name != "second" {
		t.Errorf("after a replacement: %s, %v", name, err)
	}
	if got := sdktest.Review(t.Context(), rpc.NewAdmission(dial(t, p.Address, trust(t, next, p.authority, "admission"))), colored("blue")); got.Err == nil {
		t.Error("a caller of the former authority is admitted")
	}
	if err := os.WriteFile(p.files.Key, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := served(next); name != "second" {
		t.Errorf("with an invalid key: %s, %v", name, err)
	}
}

func TestReadiness(t *testing.T) {
	s := colors()
	ready := make(chan struct{})
	s.Ready = func() error {
		select {
		case <-ready:
			return nil
		default:
			return errors.New("the cache is empty")
		}
	}
	p := newSite(t, s, nil)
	health := healthpb.NewHealthClient(dial(t, p.Address, trust(t, p.authority, p.authority, "admission")))
	watch, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "portico.v1.Admission"})
	if err != nil {
		t.Fatal(err)
	}
	status := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if got, err := watch.Recv(); err != nil || got.Status != want {
			t.Fatalf("%v, %v", got, err)
		}
	}
	status(healthpb.HealthCheckResponse_NOT_SERVING)
	if code, text := p.get(t, "/readyz"); code != 500 || text != "the cache is empty\n" {
		t.Error(code, text)
	}
	if code, _ := p.get(t, "/livez"); code != 200 {
		t.Error(code)
	}
	if got := sdktest.Review(t.Context(), p.caller(t), colored("blue")); got.Err == nil || got.Err.Code != 503 || got.Err.Message != "colors is not ready: the cache is empty" {
		t.Errorf("%+v", got.Err)
	}
	close(ready)
	status(healthpb.HealthCheckResponse_SERVING)
	if code, _ := p.get(t, "/readyz"); code != 200 {
		t.Error(code)
	}
	if got := sdktest.Review(t.Context(), p.caller(t), colored("blue")); got.Err != nil {
		t.Error(got.Err)
	}
}

// TestDrain: a review in progress ends with its decision, new ones are not accepted, and the
// status port says why.
func TestDrain(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	p := newSite(t, sdk.Service{Name: "slow", Mutate: func(context.Context, *sdk.Review) error {
		entered <- struct{}{}
		<-leave
		return nil
	}}, nil)
	first := make(chan error, 1)
	caller := p.caller(t)
	go func() {
		_, err := caller.Mutate(context.Background(), colored("blue"))
		first <- err
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- p.stop() }()
	for code := 200; code == 200; {
		code, _ = p.get(t, "/readyz")
	}
	if _, text := p.get(t, "/readyz"); text != "shutting down\n" {
		t.Errorf("/readyz: %s", text)
	}
	for {
		conn, err := tls.Dial("tcp", p.Address, trust(t, p.authority, p.authority, "admission"))
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestADrainIsBounded(t *testing.T) {
	entered := make(chan struct{})
	forever := make(chan struct{})
	p := newSite(t, sdk.Service{Name: "stuck", Mutate: func(context.Context, *sdk.Review) error {
		entered <- struct{}{}
		<-forever
		return nil
	}}, func(o *sdk.Options) { o.DrainTimeout = 10 * time.Millisecond })
	t.Cleanup(func() { close(forever) })
	caller := p.caller(t)
	go sdktest.Review(context.Background(), caller, colored("blue"))
	<-entered
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

func TestStart(t *testing.T) {
	ended := make(chan struct{})
	s := colors()
	var started bool
	s.Ready = func() error {
		if !started {
			t.Error("Ready is called before Start has returned")
		}
		return nil
	}
	s.Start = func(ctx context.Context) error {
		started = true
		go func() {
			<-ctx.Done()
			close(ended)
		}()
		return nil
	}
	if err := newSite(t, s, nil).stop(); err != nil {
		t.Fatal(err)
	}
	<-ended
	s.Start = func(context.Context) error { return errors.New("no database") }
	if err := newSite(t, s, nil).stop(); err == nil || err.Error() != "starting: no database" {
		t.Error(err)
	}
}

func TestMetrics(t *testing.T) {
	p := newSite(t, colors(), nil)
	for _, color := range []string{"blue", "navy", "red", "broken"} {
		sdktest.Review(t.Context(), p.caller(t), colored(color))
	}
	_, text := p.get(t, "/metrics")
	for _, want := range []string{
		`admission_reviews_total{phase="mutate",verdict="admitted"} 4`, `admission_reviews_total{phase="validate",verdict="admitted"} 2`,
		`admission_reviews_total{phase="validate",verdict="refused"} 1`, `admission_reviews_total{phase="validate",verdict="failed"} 1`,
		`admission_review_seconds_bucket{phase="validate",le="+Inf"} 4`, `admission_review_seconds_count{phase="mutate"} 4`, "admission_reviews_in_flight 0",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}
