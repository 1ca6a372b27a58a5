package home

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/portico-platform/portico/services/kit/run"
)

// Welcome returns the last service of the all-in-one: once all services are running, it
// prints example commands to standard output.
func Welcome() run.Service {
	return run.Service{
		Name:  "welcome",
		About: "prints example commands when the service is running",
		Start: func(_ context.Context, n *run.Node) error {
			dir, _ := n.Flags.GetString("data-dir")
			address, err := addressOf(n.Flags)
			if err != nil {
				return err
			}
			return welcome(os.Stdout, dir, address.url(), n.Vocabulary.Name)
		},
	}
}

// welcome writes commands that can be pasted into a shell. It does not print secrets,
// because the output may be logged.
func welcome(w io.Writer, dir, server, vocabulary string) error {
	file := func(name string) string { return quoted(filepath.Join(dir, name)) }
	_, err := fmt.Fprintf(w, `
Portico serves at %s (vocabulary %s; the administrator's token and kubeconfig are in %s).

  curl --cacert %s -H "Authorization: Bearer $(cat %s)" %s/api/v1/namespaces
  kubectl --kubeconfig %s get namespaces

The web console is at %s/console/, the documentation at %s/docs/.

`, server, vocabulary, dir, file(caCert), file(adminToken), server, file(adminConfig), server, server)
	return err
}

// quoted quotes a path for the shell.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
