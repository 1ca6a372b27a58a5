package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/internal/tools/servertiming"
	"github.com/portico-platform/portico/services/kit/run"
)

const (
	// maxSent bounds the body of a request, and maxMessage what is read of an error.
	maxSent, maxMessage = 16 << 20, 1 << 20
	// barWidth is the number of characters for the whole request.
	barWidth = 40
)

// timedRequest is a request and how long its stages took.
type timedRequest struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Code   int    `json:"code"`
	Bytes  int64  `json:"bytes"`
	// Client is the time from a connection to the first byte of the response, and Total that
	// of the front door.
	Client float64              `json:"clientMilliseconds"`
	Total  float64              `json:"totalMilliseconds"`
	Stages []servertiming.Stage `json:"stages"`
}

// outgoing is a request to be made.
type outgoing struct {
	method, path, contentType string
	body                      []byte
}

func (s *session) trace() *cobra.Command {
	var flags requestFlags
	var data, contentType string
	c := &cobra.Command{
		Use: "trace METHOD /PATH | trace get|list|delete RESOURCE [NAME]", Short: "Makes one request and shows how long each of its stages took", Args: cobra.RangeArgs(2, 3),
		Example: "  portico trace get pods -n shop\n  portico trace GET '/api/v1/nodes?limit=10'\n  portico trace POST /api/v1/namespaces/shop/configmaps?dryRun=All --data=object.json",
		RunE: func(c *cobra.Command, args []string) error {
			request, err := s.outgoing(flags, args)
			if err != nil {
				return err
			}
			if request.contentType = contentType; contentType == "" && request.method == http.MethodPatch {
				request.contentType = "application/merge-patch+json"
			}
			if data != "" {
				if request.body, err = readBody(data); err != nil {
					return fmt.Errorf("--data: %w", err)
				}
			}
			config, err := s.config()
			if err != nil {
				return err
			}
			timed, refused, err := request.timed(c.Context(), config)
			if err != nil {
				return err
			}
			if err := s.print(timed, timed.write); err != nil {
				return err
			}
			return refused
		},
	}
	flags.register(c)
	c.Flags().Lookup("all-namespaces").Usage = "the objects of all namespaces"
	c.Flags().StringVar(&data, "data", "", "`file` with the body of the request; - is standard input")
	c.Flags().StringVar(&contentType, "content-type", "", "media `type` of the body; otherwise JSON, or a merge patch for PATCH")
	return c
}

// readBody reads the body of a request.
func readBody(name string) ([]byte, error) {
	var from io.Reader = os.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	body, err := io.ReadAll(io.LimitReader(from, maxSent+1))
	if err == nil && len(body) > maxSent {
		err = fmt.Errorf("more than %d bytes", maxSent)
	}
	return body, err
}

// outgoing parses METHOD /PATH, or VERB RESOURCE NAME.
func (s *session) outgoing(flags requestFlags, args []string) (outgoing, error) {
	if strings.HasPrefix(args[1], "/") {
		if len(args) > 2 {
			return outgoing{}, fmt.Errorf("%q: a path stands for the whole request", args[2])
		}
		return outgoing{method: strings.ToUpper(args[0]), path: args[1]}, nil
	}
	resource, name, _ := strings.Cut(args[1], "/")
	if len(args) > 2 {
		name = args[2]
	}
	verb := strings.ToLower(args[0])
	switch {
	case verb != "get" && verb != "list" && verb != "delete":
		return outgoing{}, fmt.Errorf("%q: use get, list or delete, or METHOD and /PATH", args[0])
	case verb == "delete" && name == "":
		return outgoing{}, errors.New("delete needs the NAME of an object")
	case verb == "list" && name != "":
		return outgoing{}, fmt.Errorf("%q: list takes no NAME", name)
	case name == "" && flags.subresource != "":
		return outgoing{}, run.Usagef("--subresource needs the NAME of an object")
	case name != "" && flags.allNamespaces:
		return outgoing{}, run.Usagef("--all-namespaces: an object is in one namespace")
	}
	a, err := s.access()
	if err != nil {
		return outgoing{}, err
	}
	r, err := s.request(a, flags, verb, resource)
	if err != nil {
		return outgoing{}, err
	}
	version, err := a.version(resource)
	if err != nil {
		return outgoing{}, err
	}
	parts := []string{"", "apis", r.Group, version}
	if r.Group == "" {
		parts = []string{"", "api", version}
	}
	if r.Namespace != "" {
		parts = append(parts, "namespaces", r.Namespace)
	}
	for _, part := range []string{r.Resource, name, flags.subresource} {
		if part != "" {
			parts = append(parts, url.PathEscape(part))
		}
	}
	method := http.MethodGet
	if verb == "delete" {
		method = http.MethodDelete
	}
	return outgoing{method: method, path: strings.Join(parts, "/")}, nil
}

// timed makes the request. refused is the error that the response describes.
func (o outgoing) timed(ctx context.Context, config *rest.Config) (timed timedRequest, refused, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return timed, nil, err
	}
	addresses, err := restClient(config)
	if err != nil {
		return timed, nil, err
	}
	var connected, answered time.Time
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = time.Now() },
		GotFirstResponseByte: func() { answered = time.Now() }})
	request, err := http.NewRequestWithContext(ctx, o.method, addresses.Verb(o.method).RequestURI(o.path).URL().String(), bytes.NewReader(o.body))
	if err != nil {
		return timed, nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Portico-Server-Timing", "stages")
	if o.contentType = strings.TrimSpace(o.contentType); o.contentType == "" {
		o.contentType = "application/json"
	}
	if len(o.body) > 0 {
		request.Header.Set("Content-Type", o.contentType)
	}
	response, err := client.Do(request)
	if err != nil {
		return timed, nil, err
	}
	defer response.Body.Close()
	timed = timedRequest{Method: o.method, Path: o.path, Code: response.StatusCode, Client: answered.Sub(connected).Seconds() * 1000}
	var known bool
	timed.Total, timed.Stages, known = servertiming.Parse(response.Header)
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		refused = statusError(response)
		if !known {
			return timed, nil, refused
		}
	case !known:
		return timed, nil, errors.New("the response has no timings: the server is older, or this is a watch or a connection")
	}
	copied, err := io.Copy(io.Discard, response.Body)
	timed.Bytes = copied
	return timed, refused, err
}

// statusError returns the error that a response describes.
func statusError(response *http.Response) error {
	var status metav1.Status
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMessage))
	if err != nil || json.Unmarshal(body, &status) != nil || status.Message == "" {
		return errors.New("the server responded with " + response.Status)
	}
	return errors.New(plain.Escape(status.Message))
}

// write writes the stages as a table, with a bar for the part of the request that each took.
func (t timedRequest) write(w io.Writer) error {
	plain.Fprintf(w, "%s %s: %d, %s, %.3f ms in the front door, %.3f ms for the client\n\n", t.Method, t.Path, t.Code, sizeText(float64(t.Bytes)), t.Total, t.Client)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STAGE\tSTART\tMS\t")
	for _, s := range t.Stages {
		start, bar := "", ""
		if s.Start != nil {
			start, bar = fmt.Sprintf("%.3f", *s.Start), t.bar(s)
		}
		plain.Fprintf(table, "%s\t%s\t%.3f\t%s\n", s.Name, start, s.Milliseconds, bar)
	}
	return table.Flush()
}

// bar returns the bar of a stage, at least one character.
func (t timedRequest) bar(s servertiming.Stage) string {
	if t.Total <= 0 {
		return ""
	}
	from := int(min(max(*s.Start/t.Total*barWidth, 0), barWidth-1))
	length := int(min(max(s.Milliseconds/t.Total*barWidth+0.5, 1), float64(barWidth-from)))
	return strings.Repeat("·", from) + strings.Repeat("█", length)
}
