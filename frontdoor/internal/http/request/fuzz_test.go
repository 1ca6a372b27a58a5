package request

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
)

// refusal checks that an error is a client error with a short message.
func refusal(t *testing.T, query string, err error) {
	t.Helper()
	var status *services.Status
	if !errors.As(err, &status) || status.Code < 400 || status.Code >= 500 {
		t.Errorf("%q: got %v, want an error of the client's", query, err)
	} else if len(status.Message) > 20*len(query)+2000 {
		t.Errorf("%d bytes of parameters make a message of %d", len(query), len(status.Message))
	}
}

// FuzzReadOptions reads the parameters of lists and watches.
func FuzzReadOptions(f *testing.F) {
	f.Fuzz(func(t *testing.T, verb, query string) {
		o, err := ParseReadOptions(asking(verb, query, &catalogue.Type{}))
		if err != nil {
			refusal(t, query, err)
			return
		}
		if o.Limit < 0 || o.Revision < 0 {
			t.Errorf("%q: got %+v", query, o)
		}
		if read := o.ListRead(); read.Mode == services.Exact && read.Revision == 0 {
			t.Errorf("%q asks for exactly no revision", query)
		}
		o.GetRead()
	})
}

// FuzzWriteOptions reads the parameters of writes and deletions and the timeout.
func FuzzWriteOptions(f *testing.F) {
	f.Fuzz(func(t *testing.T, verb, mediaType, query string) {
		r := asking(verb, query, &catalogue.Type{})
		if r.Request == nil {
			r.Request = &http.Request{}
		}
		r.Request.Header = http.Header{"Content-Type": {mediaType}}
		if o, err := ParseWriteOptions(r); err != nil {
			refusal(t, query, err)
		} else if len(o.Manager) > 128 {
			t.Errorf("a field manager of %d bytes", len(o.Manager))
		}
		values, _ := url.ParseQuery(query)
		var d metav1.DeleteOptions
		if err := QueryDeleteOptions(values, &d); err != nil {
			refusal(t, query, err)
		} else if err := r.CheckDeleteOptions(&d); err != nil {
			refusal(t, query, err)
		}
		if patience, err := r.Timeout(time.Minute); err != nil {
			refusal(t, query, err)
		} else if patience <= 0 || patience > time.Minute {
			t.Errorf("%q: patience of %v", query, patience)
		}
	})
}
