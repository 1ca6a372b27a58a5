package webhook

import (
	"context"
	"errors"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

// maxTries is how often Retry makes a call.
const maxTries = 5

// Retry makes a call until it succeeds, fails for good, or has failed five times. The pause
// before the first retry is given, and each further one is half longer. It returns the last
// error of the call.
func Retry(ctx context.Context, pause time.Duration, call func(context.Context) error) error {
	var failure error
	backoff := wait.Backoff{Duration: pause, Factor: 1.5, Jitter: 0.2, Steps: maxTries}
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		failure = call(ctx)
		if failure != nil && temporary(failure) {
			return false, nil
		}
		return true, failure
	})
	if failure != nil {
		return failure
	}
	return err
}

// temporary reports whether a call that failed may succeed when it is repeated.
func temporary(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		return utilnet.IsConnectionReset(err)
	}
	switch status.Code {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusGatewayTimeout:
		return true
	}
	return status.Retry && status.Code >= http.StatusInternalServerError
}
