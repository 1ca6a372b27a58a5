// Package tools is the commands of portico that people use on a running suite, with the rights
// of their kubeconfig and through the API alone: portico who-can, or kubectl portico who-can.
// docs/operations/tools.md describes them.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	load "github.com/portico-platform/portico/internal/load/command"
	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/internal/tools/certs"
)

// plugin is the name of the program as a plugin of kubectl.
const plugin = "kubectl-portico"

// Handles reports whether the arguments of a process, with its name first, are for this package.
func Handles(args []string) bool {
	if filepath.Base(args[0]) == plugin {
		return true
	}
	if len(args) < 2 {
		return false
	}
	if slices.Contains([]string{"completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, args[1]) {
		return true
	}
	return slices.ContainsFunc((&session{}).commands(), func(c *cobra.Command) bool { return c.Name() == args[1] })
}

// Main runs the command of the arguments and returns the exit status: 0, 1 after an error, and
// also if the answer of who-can or explain-access is no.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s := &session{out: stdout}
	name := "portico"
	if filepath.Base(args[0]) == plugin {
		name = "kubectl portico"
	}
	root := &cobra.Command{Use: "portico", Short: "Tools for a running suite", SilenceUsage: true, SilenceErrors: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name}}
	root.SetArgs(args[1:])
	root.SetOut(stdout)
	root.SetErr(stderr)
	fs := root.PersistentFlags()
	fs.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig `file`; otherwise $KUBECONFIG or ~/.kube/config")
	fs.StringVar(&s.context, "context", "", "`name` of the context in the kubeconfig")
	fs.StringVarP(&s.namespace, "namespace", "n", "", "namespace; otherwise that of the context")
	fs.StringVarP(&s.output, "output", "o", "text", "`format` of the output: text or json")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if s.output != "text" && s.output != "json" {
			return fmt.Errorf("--output: unknown format %q: use text or json", s.output)
		}
		return nil
	}
	root.AddCommand(s.commands()...)
	if err := root.ExecuteContext(ctx); err != nil {
		if message := err.Error(); message != "" {
			plain.Fprintf(stderr, "%s: %s\n", name, strings.TrimSpace(message))
		}
		return 1
	}
	return 0
}

// session is one run of a command.
type session struct {
	kubeconfig, context, namespace, output string
	out                                    io.Writer
}

func (s *session) commands() []*cobra.Command {
	return []*cobra.Command{s.whoCan(), s.explainAccess(), s.history(), s.top(), s.watches(), s.trace(),
		(&certs.Session{Config: s.config, Print: s.print}).Command(),
		load.New(load.Session{Config: s.config, Namespace: func() string { return s.namespace }, Print: s.print})}
}

// negative is the error of a command that worked and whose answer is no.
type negative struct{}

func (negative) Error() string { return "" }

func (s *session) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: s.context})
}

// config returns the configuration of clients.
func (s *session) config() (*rest.Config, error) {
	config, err := s.loader().ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = "portico-tools"
	return config, nil
}

// inNamespace returns the namespace that the command is about.
func (s *session) inNamespace() (string, error) {
	if s.namespace != "" {
		return s.namespace, nil
	}
	namespace, _, err := s.loader().Namespace()
	return namespace, err
}

// print writes a value as JSON, or calls text. What could control a terminal is escaped in both.
func (s *session) print(value any, text func(w io.Writer) error) error {
	out := plain.NewWriter(s.out)
	if s.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	return text(out)
}
