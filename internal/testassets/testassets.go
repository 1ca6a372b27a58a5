// Package testassets lets the program portico take the place of kube-apiserver and etcd in the
// folder KUBEBUILDER_ASSETS, from which controller-runtime's envtest starts a control plane. It
// translates their flags. docs/testing.md describes the use.
package testassets

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/portico-platform/portico/internal/allinone"
	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/services/kit/run"
)

// The names of the programs.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
)

// Run runs the program that args[0] names, if it is one of the two, and does not return then.
func Run(args []string) {
	switch filepath.Base(args[0]) {
	case apiServer:
		run.MainOf(run.App{
			Name:     apiServer,
			About:    "The services of Portico as a test control plane, which accepts flags of kube-apiserver. These have no effect: " + strings.Join(ignored(), ", ") + ".",
			Services: allinone.Services([]string{"--etcd-servers"}),
		}, apiServerArgs(args[1:]))
	case etcd:
		wal.SegmentSizeBytes = 4 << 20 // which etcd preallocates twice
		// A single member has no peers: a short election timeout only shortens its start.
		etcdmain.Main(append([]string{etcd, "--heartbeat-interval=10", "--election-timeout=100"}, args[1:]...))
		os.Exit(0)
	}
}

// ignored returns the flags of kube-apiserver that change nothing in the answers of Portico.
func ignored() []string {
	return []string{
		"allow-privileged", "insecure-port", "insecure-bind-address", "contention-profiling",
		"delete-collection-workers", "enable-garbage-collector", "endpoint-reconciler-type", "external-hostname",
		"kubernetes-service-node-port", "lease-reuse-duration-seconds", "logging-format", "logtostderr",
		"storage-backend", "storage-media-type", "v", "vmodule",
	}
}

// apiServerArgs translates arguments of kube-apiserver into those of Portico.
func apiServerArgs(args []string) []string {
	translated := []string{"--vocabulary=k8s", "--emulated-version=1.36", "--log-level=warn", "--shutdown-timeout=0s", "--memory-release=false"}
	if dir := valueOf(args, "cert-dir"); dir != "" && valueOf(args, "tls-cert-file") == "" {
		translated = append(translated, "--tls-cert-file="+filepath.Join(dir, "apiserver.crt"), "--tls-private-key-file="+filepath.Join(dir, "apiserver.key"))
	}
	dropped := append(ignored(), "cert-dir")
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !strings.HasPrefix(args[i], "-") || !slices.Contains(dropped, name) {
			translated = append(translated, args[i])
			continue
		}
		if !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++ // its value
		}
	}
	return translated
}

// valueOf returns the value of a flag, empty if it is not given.
func valueOf(args []string, flag string) string {
	for i, arg := range args {
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case !strings.HasPrefix(arg, "-") || name != flag:
		case joined:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}

const usage = `portico envtest creates the programs that controller-runtime's envtest starts.

  portico envtest DIR

DIR gets links to this program with the names kube-apiserver and etcd. Existing files are not
replaced. Test suites use them with KUBEBUILDER_ASSETS=DIR.
`

// Main is the command envtest. It returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	switch {
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
		fmt.Fprint(stdout, usage)
		return 0
	case len(args) != 1 || strings.HasPrefix(args[0], "-"):
		fmt.Fprintln(stderr, "portico envtest: one folder is required (see portico envtest --help)")
		return 2
	}
	dir, err := install(args[0])
	if err != nil {
		plain.Fprintf(stderr, "portico envtest: %v\n", err)
		return 1
	}
	fmt.Fprintf(stdout, "export KUBEBUILDER_ASSETS='%s'\n", strings.ReplaceAll(dir, "'", `'\''`))
	return 0
}

// install makes the links and returns the absolute path of the folder.
func install(folder string) (string, error) {
	dir, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{apiServer, etcd} {
		link := filepath.Join(dir, name)
		if target, err := os.Readlink(link); err == nil && target == program {
			continue
		}
		if err := os.Symlink(program, link); errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("%s exists: choose another folder, or remove it", link)
		} else if err != nil {
			return "", err
		}
	}
	return dir, nil
}
