package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/internal/tools/openwatches"
)

// operations is the path of the API for administrators.
const operations = "/debug/portico/v1"

// client returns a client of the operational API.
func (s *session) client() (rest.Interface, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	return restClient(config)
}

// restClient returns a client for paths that are no resources.
func restClient(config *rest.Config) (rest.Interface, error) {
	c := rest.CopyConfig(config)
	c.ContentConfig = rest.ContentConfig{NegotiatedSerializer: serializer()}
	return rest.UnversionedRESTClientFor(c)
}

// get reads a path into a value.
func get(ctx context.Context, c rest.Interface, path string, query map[string]string, into any) error {
	request := c.Get().AbsPath(operations + path)
	for name, value := range query {
		request = request.Param(name, value)
	}
	raw, err := answer(request.Do(ctx))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// answer returns the body of a response, or the error that its Status describes.
func answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

func (s *session) watches() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "watches", Short: "Lists the open watches of all front doors, stalled ones first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := s.client()
			if err != nil {
				return err
			}
			var list openwatches.List
			if err := get(c.Context(), client, "/watches", map[string]string{"limit": fmt.Sprint(limit)}, &list); err != nil {
				return err
			}
			return s.print(list, func(w io.Writer) error { return writeWatches(w, list, time.Now()) })
		},
	}
	c.Flags().IntVar(&limit, "limit", 200, "maximum `number` of watches to list, up to 1000")
	c.AddCommand(s.closeWatch())
	return c
}

func writeWatches(w io.Writer, list openwatches.List, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	hosts := list.Hosts()
	fmt.Fprintln(t, "ID\tFRONT DOOR\tUSER\tRESOURCE\tNAMESPACE\tAGE\tSENT\tREVISION\tSTALLED\tCLIENT")
	for _, x := range list.Items {
		plain.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%.1fs\t%s\n", x.ID, hosts[x.FrontDoor], x.User, x.What(), x.Namespace, now.Sub(x.Since).Round(time.Second), sizeText(float64(x.Bytes)),
			x.Revision, x.StalledSeconds, x.UserAgent)
	}
	if more := list.Total - len(list.Items); more > 0 {
		plain.Fprintf(t, "and %d more\n", more)
	}
	for _, d := range list.FrontDoors {
		if d.Error != "" {
			plain.Fprintf(t, "without the watches of front door %s: %s\n", strings.TrimSpace(d.Host+" "+d.Address), d.Error)
		}
	}
	return t.Flush()
}

func (s *session) closeWatch() *cobra.Command {
	return &cobra.Command{
		Use: "close ID...", Short: "Closes watches; clients may watch again", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, ids []string) error {
			client, err := s.client()
			if err != nil {
				return err
			}
			for _, id := range ids {
				if _, err := answer(client.Verb(http.MethodDelete).AbsPath(operations + "/watches/" + id).Do(c.Context())); err != nil {
					return err
				}
				if err := s.print(map[string]string{"id": id, "status": "closed"}, func(w io.Writer) error {
					_, err := plain.Fprintf(w, "watch %s closed\n", id)
					return err
				}); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
