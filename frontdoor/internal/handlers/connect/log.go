package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/crossing"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// log answers with the logs of a container, which the node keeps that runs it. A pod
// without a node has none (204).
func (h *Handlers) log(w http.ResponseWriter, r *request.Request) error {
	if r.Method != http.MethodGet {
		return request.NoMethod()
	}
	pod, err := h.object(r, "pods", r.Namespace, r.Name)
	if err != nil {
		return err
	}
	parameters, causes := logParameters(r.Query)
	if len(causes) > 0 {
		return services.Invalid("", "PodLogOptions", r.Name, causes)
	}
	container, err := containerOf(r.Name, r.Query.Get("container"), tree.Child(pod, "spec"))
	if err != nil {
		return err
	}
	node := tree.Text(pod, "spec", "nodeName")
	if node == "" {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	to, err := h.onNode(r, node, &url.URL{Path: "/containerLogs/" + r.Namespace + "/" + r.Name + "/" + container, RawQuery: parameters.Encode()})
	if err != nil {
		return err
	}
	if request.BoolOption(r.Query, "insecureSkipTLSVerifyBackend") {
		to.transport = h.Transports.Node(false)
	}
	return h.open.serve(r, h.Lifetime, func(ctx context.Context) error { return stream(ctx, w, r, to) })
}

// stream copies the response of a node. Each piece of a log that is followed is sent at
// once.
func stream(ctx context.Context, w http.ResponseWriter, r *request.Request, from *backend) error {
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, from.url.String(), nil)
	if err != nil {
		return err
	}
	response, err := from.transport.RoundTrip(asked) // which follows no redirects
	if err != nil {
		return nodeError(ctx, &url.Error{Op: "Get", URL: from.url.String(), Err: err})
	}
	defer response.Body.Close()
	if err := checkLog(r, response); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain")
	crossing.Seal(w.Header())
	r.Begin(http.StatusOK)
	w.WriteHeader(http.StatusOK)
	if !request.BoolOption(r.Query, "follow") {
		_, err := io.Copy(w, response.Body)
		return nodeError(ctx, err)
	}
	return nodeError(ctx, copyAtOnce(w, response.Body))
}

// copyAtOnce flushes what it has read before it reads more.
func copyAtOnce(w http.ResponseWriter, from io.Reader) error {
	control, piece := http.NewResponseController(w), make([]byte, 32<<10)
	for {
		if err := control.Flush(); err != nil {
			return err
		}
		n, err := from.Read(piece)
		if n > 0 {
			if _, err := w.Write(piece[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return control.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// nodeError returns the 500 of a node that cannot be reached. A log that the service
// itself ends is complete as far as it goes.
func nodeError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err == nil || errors.Is(cause, errClosing) || errors.Is(cause, errTooLong) {
		return nil
	}
	return &services.Status{Code: http.StatusInternalServerError, Reason: services.ReasonInternalError, Message: err.Error()}
}

// maxLogError bounds what of an error of a node is shown.
const maxLogError = 50_000

// checkLog returns the error of a node as it words it.
func checkLog(r *request.Request, response *http.Response) error {
	if response.StatusCode >= http.StatusOK && response.StatusCode <= http.StatusPartialContent {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxLogError))
	if err != nil {
		return err
	}
	s := &services.Status{Code: int32(response.StatusCode), Message: string(text), Details: &services.StatusDetails{Name: r.Name, Kind: "pods/log"}}
	switch response.StatusCode {
	case http.StatusBadRequest:
		s.Reason, s.Details = services.ReasonBadRequest, nil
	case http.StatusNotFound:
		s.Reason = services.ReasonNotFound
		s.Message = fmt.Sprintf("the server could not find the requested resource ( pods/log %s): %s", r.Name, text)
	case http.StatusInternalServerError:
		return errors.New(string(text)) // an InternalError with the text
	default:
		if response.StatusCode < http.StatusBadRequest {
			s.Code = http.StatusBadGateway
		}
		s.Reason = services.ReasonInternalError
		s.Message = fmt.Sprintf("the node that runs the pod responded with status %d: %s", response.StatusCode, text)
	}
	return s
}

// logParameters returns the options as a node reads them, or what is wrong with them.
func logParameters(given url.Values) (q url.Values, causes []services.StatusCause) {
	q = url.Values{}
	invalid := func(name, why string) {
		causes = append(causes, services.StatusCause{Reason: services.CauseInvalid, Field: name,
			Message: "Invalid value: " + strconv.Quote(given.Get(name)) + ": " + why})
	}
	for _, name := range []string{"follow", "previous", "timestamps"} {
		if request.BoolOption(given, name) {
			q.Set(name, "true")
		}
	}
	for name, least := range map[string]int64{"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1} {
		if text := given.Get(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			bound := [...]string{"greater than or equal to 0", "greater than 0"}[least]
			switch {
			case err != nil:
				invalid(name, "must be an integer "+bound)
			case n < least:
				causes = append(causes, services.StatusCause{Reason: services.CauseInvalid, Field: name, Message: fmt.Sprintf("Invalid value: %d: must be %s", n, bound)})
			}
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	if text := given.Get("sinceTime"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			invalid("sinceTime", "must be an RFC 3339 time")
		}
		q.Set("sinceTime", since.Format(time.RFC3339))
		if given.Get("sinceSeconds") != "" {
			causes = append(causes, services.StatusCause{Reason: services.CauseForbidden, Field: "sinceSeconds",
				Message: "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"})
		}
	}
	return q, causes
}
