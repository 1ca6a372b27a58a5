package sdktest_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/admission/sdk/localcert"
	"github.com/portico-platform/portico/admission/sdk/sdktest"
	"github.com/portico-platform/portico/services/rpc"
)

// TestTheServiceOfTheDocs runs the Python service of docs/admission-protocol.md and checks it
// against the contract, where Python has gRPC.
func TestTheServiceOfTheDocs(t *testing.T) {
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import grpc, grpc_tools").Run() == nil {
			python = name
			break
		}
	}
	if python == "" {
		t.Skip("needs python3 with grpcio and grpcio-tools")
	}
	page, err := os.ReadFile("../../../docs/admission-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	source := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	if source == nil {
		t.Fatal("the page has no Python")
	}
	dir, address := t.TempDir(), freeAddress(t)
	authority, err := localcert.New()
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Issue("127.0.0.1", "admission")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"server.py": bytes.Replace(source[1], []byte("127.0.0.1:9443"), []byte(address), 1),
		"tls.crt": cert, "tls.key": key, "callers.crt": authority.CA} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	generate := exec.CommandContext(t.Context(), python, "-m", "grpc_tools.protoc", "-I", "../../../services/rpc/porticov1",
		"--python_out="+dir, "--grpc_python_out="+dir, "portico.proto")
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	runUntilTheEnd(t, dir, python)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CA)
	trust := credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{pair}})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(trust), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	owned := `{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {owner: jane}}}`
	sdktest.Protocol(t, rpc.NewAdmission(conn), sdktest.Example{
		Admitted: []sdk.Request{sdktest.Create(owned), sdktest.Delete(owned)},
		Refused:  []sdk.Request{sdktest.Create(`{apiVersion: v1, kind: Pod, metadata: {name: a}}`)},
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// runUntilTheEnd runs the service until the test ends, and then stops it.
func runUntilTheEnd(t *testing.T, dir, python string) {
	t.Helper()
	var out bytes.Buffer
	service := exec.CommandContext(t.Context(), python, "server.py")
	service.Dir, service.Stdout, service.Stderr = dir, &out, &out
	service.Cancel = func() error { return service.Process.Signal(syscall.SIGTERM) }
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the context of the test has ended
		_ = service.Wait()
		if service.ProcessState.ExitCode() != 0 {
			t.Errorf("%v\n%s", service.ProcessState, out.String())
		}
	})
}
