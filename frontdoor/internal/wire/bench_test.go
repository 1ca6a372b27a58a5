package wire_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// discard is a response that is discarded.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d discard) WriteHeader(int)             {}

// pods returns pods of about 6 KB, managed fields included.
func pods(n int) []services.Object {
	managed := strings.Repeat(`"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}},`, 24)
	objects := make([]services.Object, n)
	for i := range objects {
		objects[i] = services.Object{UID: fmt.Sprintf("uid-%d", i), Revision: int64(i + 1), JSON: fmt.Appendf(nil,
			`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d","name":"pod-%d","namespace":"default","uid":"uid-%d",`+
				`"creationTimestamp":"2026-01-05T23:58:00Z","labels":{"app":"x","tier":"web"},"managedFields":[{"manager":"m","operation":"Update",`+
				`"apiVersion":"v1","time":"2026-01-05T23:58:00Z","fieldsType":"FieldsV1","fieldsV1":{%s"f:x":{}}}]},`+
				`"spec":{"volumes":[{"name":"token","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}],"defaultMode":420}}],`+
				`"containers":[{"name":"main","image":"example.com/image:v1.2.3","command":["run","--flag=value"],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],`+
				`"ports":[{"containerPort":8080,"protocol":"TCP"}],"resources":{"limits":{"cpu":"500m","memory":"128Mi"},"requests":{"cpu":"250m","memory":"64Mi"}},`+
				`"volumeMounts":[{"name":"token","readOnly":true,"mountPath":"/var/run/secrets"}],"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}],`+
				`"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","nodeName":"node-1","schedulerName":"default-scheduler",`+
				`"tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true},`+
				`"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-05T23:59:00Z"}],`+
				`"hostIP":"10.0.0.1","podIP":"10.1.0.1","podIPs":[{"ip":"10.1.0.1"}],"startTime":"2026-01-05T23:58:30Z","containerStatuses":[{"name":"main",`+
				`"state":{"running":{"startedAt":"2026-01-05T23:59:00Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"example.com/image:v1.2.3",`+
				`"imageID":"sha256:0123456789abcdef","containerID":"c://0123456789abcdef","started":true}],"qosClass":"Burstable"}}`, i+1, i, i, managed)}
	}
	return objects
}

// BenchmarkList writes lists of 10,000 pods: with a cold cache every form is encoded, with
// a warm one forms are in the cache.
func BenchmarkList(b *testing.B) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.Platform()})
	if err != nil {
		b.Fatal(err)
	}
	t, _ := types.Lookup("", "v1", "pods")
	objects := pods(10_000)
	for _, c := range []struct {
		name string
		form wire.Form
		hot  bool
	}{
		{"json", wire.Form{}, false},
		{"partial", wire.Form{As: wire.Partial, MetaVersion: "v1"}, false},
		{"table/cold", wire.Form{As: wire.Table, MetaVersion: "v1"}, false},
		{"table/hot", wire.Form{As: wire.Table, MetaVersion: "v1"}, true},
		{"protobuf/cold", wire.Form{Media: wire.Protobuf}, false},
		{"protobuf/hot", wire.Form{Media: wire.Protobuf}, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			codec := wire.New(wire.Config{Vocabulary: vocabulary.Platform(), CacheBytes: 256 << 20})
			b.SetBytes(int64(len(objects) * len(objects[0].JSON)))
			b.ReportAllocs()
			start := spent(b)
			for b.Loop() {
				list := codec.Encoder(c.form, t).List(discard{http.Header{}})
				if err := list.Begin(wire.ListMeta{Revision: 1}); err != nil {
					b.Fatal(err)
				}
				for _, o := range objects {
					if !c.hot {
						o.UID = ""
					}
					if err := list.Item(o); err != nil {
						b.Fatal(err)
					}
				}
				if err := list.End(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((spent(b)-start).Seconds()*1e6/float64(b.N*len(objects)), "cpu-µs/object")
		})
	}
}

// spent returns the CPU time of this process: on a shared machine it is more reliable than
// elapsed time.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEvent encodes one change for a watch.
func BenchmarkEvent(b *testing.B) {
	object := pods(1)[0]
	t := &catalogue.Type{Version: "v1", Kind: "Pod", ListKind: "PodList"}
	for _, c := range []struct {
		name string
		form wire.Form
	}{{"json", wire.Form{}}, {"table", wire.Form{As: wire.Table, MetaVersion: "v1"}}, {"protobuf", wire.Form{Media: wire.Protobuf}}} {
		b.Run(c.name, func(b *testing.B) {
			events := newCodec(vocabulary.Platform()).Encoder(c.form, t).Events()
			var frame []byte
			var err error
			b.ReportAllocs()
			for b.Loop() {
				if frame, err = events.Event(frame[:0], "MODIFIED", object); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
