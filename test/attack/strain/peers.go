package strain

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/rpc"
	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// heavyService is an admission service whose responses have many empty parts.
type heavyService struct{}

func (heavyService) Mutate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{Timings: make([]services.Timing, 100_000)}, nil
}

func (heavyService) Validate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{Warnings: make([]string, 200_000)}, nil
}

const admissionServices = "/apis/extension.portico.dev/v1/admissionservices"

// serving returns a certificate for a hostile server, and its authority.
func serving(t *attack.Target, name string) (pair tls.Certificate, ca string, err error) {
	authority, err := peertls.NewAuthority()
	if err != nil {
		return pair, "", err
	}
	files, err := authority.Issue(t.Dir, attack.Unique("peer"), name)
	if err != nil {
		return pair, "", err
	}
	trust, err := os.ReadFile(files.CA)
	if err != nil {
		return pair, "", err
	}
	pair, err = tls.LoadX509KeyPair(files.Cert, files.Key)
	return pair, base64.StdEncoding.EncodeToString(trust), err
}

// heavyAdmissionService declares a shadow, which is to have no effect, and creates objects.
func heavyAdmissionService(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	pair, ca, err := serving(t, "heavy")
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})))
	rpc.RegisterAdmission(server, heavyService{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	name, root := attack.Unique("heavy"), t.Root()
	if err := root.Create(ctx, admissionServices, fmt.Sprintf(`{"apiVersion":"extension.portico.dev/v1","kind":"AdmissionService","metadata":{"name":%q},
		"spec":{"mode":"Shadow","phase":"Both","sideEffects":"None","endpoint":{"addresses":[%q]},"trust":{"serverName":"heavy","caBundle":%q},
		"namespaceSelector":{"matchLabels":{"attack":%q}},"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["*"],"resources":["configmaps"]}]}}`,
		name, listener.Addr().String(), ca, namespace)); err != nil {
		return err
	}
	defer func() {
		_, _ = root.Provoke(context.WithoutCancel(ctx), attack.Request(http.MethodDelete, admissionServices+"/"+name, ""))
	}()
	return attack.Modest(t, modest, func() error {
		for range attack.Count(t, 3, 10) {
			if err := at(ctx, 12, func(ctx context.Context) error {
				return root.Create(ctx, attack.ConfigMaps(namespace), attack.ConfigMap(attack.Unique("shadowed"), ""))
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// extensionNetwork is where the front doors under attack may connect to extensions.
const extensionNetwork = "127.66.0.1"

// heavyExtension serves documents with many empty values. Other requests go on, and it is not in the documents of
// the API.
func heavyExtension(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", extensionNetwork+":0")
	if err != nil {
		return err
	}
	group := strings.ReplaceAll(attack.Unique("heavy"), "-", "") + ".example.com"
	extension := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/openapi/v3/apis/" + group + "/v1":
			fmt.Fprintf(w, `{"openapi":"3.0.0","paths":{},"x-a":[%s[]]}`, strings.Repeat("[],", 2_700_000))
		case "/openapi/v2":
			fmt.Fprintf(w, `{"swagger":"2.0","info":{"title":"a","version":"1"},"paths":{},"definitions":{"a":{"allOf":[%s{}]}}}`, strings.Repeat("{},", 2_700_000))
		default:
			fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/v1","resources":[%s{}]}`, group, strings.Repeat("{},", 1_300_000))
		}
	}))
	_ = extension.Listener.Close()
	extension.Listener = listener
	extension.StartTLS()
	defer extension.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	root, services := t.Root(), "/api/v1/namespaces/"+namespace+"/services"
	if err := root.Create(ctx, services, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"type":"ExternalName","externalName":"`+extensionNetwork+`"}}`); err != nil {
		return err
	}
	registration := t.Admin.Vocabulary.Group("apiregistration.")
	all := "/apis/" + registration + "/v1/apiservices"
	if err := root.Create(ctx, all, fmt.Sprintf(`{"apiVersion":"%[1]s/v1","kind":"APIService","metadata":{"name":"v1.%[2]s"},"spec":{"group":%[2]q,"version":"v1",
		"groupPriorityMinimum":100,"versionPriority":100,"insecureSkipTLSVerify":true,"service":{"namespace":%[3]q,"name":"x","port":%[4]s}}}`,
		registration, group, namespace, port)); err != nil {
		return err
	}
	defer func() {
		_, _ = root.Provoke(context.WithoutCancel(ctx), attack.Request(http.MethodDelete, all+"/v1."+group, ""))
	}()
	return attack.Modest(t, modest, func() error {
		if err := attack.Eventually(ctx, 30*time.Second, "the extension is available", func() (bool, error) {
			answer, err := root.Do(ctx, cluster.Request{Path: all + "/v1." + group})
			return strings.Contains(answer.Body, `"reason":"Passed"`), err
		}); err != nil {
			return err
		}
		attack.Wait(ctx, time.Duration(attack.Count(t, 5, 20))*time.Second) // in which its documents are read
		return attack.Promptly(ctx, 5*time.Second, "the documents meanwhile", func(ctx context.Context) error {
			return attack.Expect(ctx, root, cluster.Request{Path: "/openapi/v2"}, 200)
		})
	})
}
