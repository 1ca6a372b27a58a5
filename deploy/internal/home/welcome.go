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

// Welcome is the end of the all-in-one's list: once everything serves, it says
// on standard output how to talk to it.
func Welcome() run.Service {
	return run.Service{
		Name:  "welcome",
		About: "says how to talk to the service once it is up",
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

// welcome writes lines that can be pasted into a shell. Secrets stay in their
// files: output ends up in logs.
func welcome(w io.Writer, dir, server, vocabulary string) error {
	file := func(name string) string { return quoted(filepath.Join(dir, name)) }
	_, err := fmt.Fprintf(w, `
Portico serves at %s (vocabulary %s; the administrator's token and kubeconfig are in %s).

  curl --cacert %s -H "Authorization: Bearer $(cat %s)" %s/api/v1/namespaces
  kubectl --kubeconfig %s get namespaces

`, server, vocabulary, dir, file(caCert), file(adminToken), server, file(adminConfig))
	return err
}

// quoted returns a path as one word of a shell.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
