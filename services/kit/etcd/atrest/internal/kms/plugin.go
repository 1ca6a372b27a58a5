package kms

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/kms/apis/v2"
)

const (
	// maxAnswer bounds an answer of a plugin.
	maxAnswer = 128 << 10
	// maxMessage bounds the text of a plugin's error in ours.
	maxMessage = 300
)

// Socket returns the address of a unix socket from an endpoint. "@" begins the name of an
// abstract socket, as in unix:///@name.
func Socket(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "unix" || u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(u.Path) < 2 {
		return "", fmt.Errorf("%q is not unix:///<path of a socket>", endpoint)
	}
	if strings.HasPrefix(u.Path, "/@") {
		return u.Path[1:], nil
	}
	return u.Path, nil
}

// plugin calls a KMS plugin. Each call ends after the timeout.
type plugin struct {
	spec   Spec
	conn   *grpc.ClientConn
	client api.KeyManagementServiceClient
	took   *prometheus.HistogramVec
}

// dial does not wait for the plugin, which may start later.
func dial(s Spec, took *prometheus.HistogramVec) (*plugin, error) {
	socket, err := Socket(s.Endpoint)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///kms",
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: s.Timeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, err
	}
	return &plugin{s, conn, api.NewKeyManagementServiceClient(conn), took}, nil
}

// call makes a call, and measures it.
func (p *plugin) call(ctx context.Context, method string, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.spec.Timeout)
	defer cancel()
	began := time.Now()
	err := do(ctx)
	p.took.WithLabelValues(p.spec.Name, method, status.Code(err).String()).Observe(time.Since(began).Seconds())
	if err != nil {
		return &callError{method, status.Convert(err)}
	}
	return nil
}

// callError is a failed call.
type callError struct {
	method string
	status *status.Status
}

func (e *callError) Error() string {
	return fmt.Sprintf("%s failed: %s: %s", e.method, e.status.Code(), quoted(e.status.Message()))
}

// Away reports whether a call failed because the plugin did not answer.
func Away(err error) bool {
	var e *callError
	return errors.As(err, &e) && (e.status.Code() == codes.Unavailable || e.status.Code() == codes.DeadlineExceeded)
}

// status returns the key_id of the plugin if it is healthy.
func (p *plugin) status(ctx context.Context) (keyID string, err error) {
	var answer *api.StatusResponse
	err = p.call(ctx, "Status", func(ctx context.Context) (err error) {
		answer, err = p.client.Status(ctx, &api.StatusRequest{})
		return err
	})
	switch {
	case err != nil:
		return "", err
	case answer.Healthz != "ok":
		return "", fmt.Errorf("its healthz is %s, not ok", quoted(answer.Healthz))
	case answer.Version != "v2" && answer.Version != "v2beta1":
		return "", fmt.Errorf("its version is %s, not v2", quoted(answer.Version))
	}
	return answer.KeyId, checkKeyID(answer.KeyId)
}

func (p *plugin) encrypt(ctx context.Context, seed []byte) (envelope, error) {
	var answer *api.EncryptResponse
	err := p.call(ctx, "Encrypt", func(ctx context.Context) (err error) {
		answer, err = p.client.Encrypt(ctx, &api.EncryptRequest{Plaintext: seed, Uid: uuid.NewString()})
		return err
	})
	if err != nil {
		return envelope{}, err
	}
	e := envelope{keyID: answer.KeyId, seed: answer.Ciphertext, annotations: answer.Annotations}
	if err := e.check(); err != nil {
		return envelope{}, fmt.Errorf("its response to Encrypt: %w", err)
	}
	return e, nil
}

// decrypt returns a seed. The result is for all who read values of the seed, so it does not
// end with a request.
func (p *plugin) decrypt(e envelope) (seed []byte, err error) {
	var answer *api.DecryptResponse
	err = p.call(context.Background(), "Decrypt", func(ctx context.Context) (err error) {
		answer, err = p.client.Decrypt(ctx, &api.DecryptRequest{Ciphertext: e.seed, Uid: uuid.NewString(), KeyId: e.keyID, Annotations: e.annotations})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(answer.Plaintext) != seedSize {
		return nil, fmt.Errorf("its response to Decrypt has %d bytes, not %d", len(answer.Plaintext), seedSize)
	}
	return answer.Plaintext, nil
}

// quoted returns a text of the plugin for our errors.
func quoted(text string) string { return fmt.Sprintf("%.*q", maxMessage, text) }
