// Package tools is the commands of portico that people use on a running suite, with the rights
// of their kubeconfig and through the API alone: portico who-can, or kubectl portico who-can.
// docs/operations/tools.md describes them.
package tools

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	load "github.com/portico-platform/portico/internal/load/command"
	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/internal/tools/certs"
	"github.com/portico-platform/portico/services/kit/run"
)

// Commands returns the commands, which write to out. Their errors are empty if the answer of who-can or explain-access
// is no, and run.ErrUsage for wrong flags and arguments.
func Commands(out io.Writer) []*cobra.Command {
	s := &session{out: out}
	commands := s.commands()
	for _, c := range commands {
		s.addFlags(c)
	}
	return commands
}

// Main runs the commands as a plugin of kubectl, whose flags may precede the name of a command, and returns the
// exit status.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s := &session{out: stdout}
	root := &cobra.Command{Use: "portico", Short: "Tools for a running suite", SilenceUsage: true, SilenceErrors: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl portico"}}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(s.commands()...)
	s.addFlags(root)
	MarkUsage(root)
	return run.ExitStatus(root.ExecuteContext(ctx), "kubectl portico", plain.NewWriter(stderr))
}

// addFlags adds the flags of all commands to a command and those below it.
func (s *session) addFlags(c *cobra.Command) {
	fs := c.PersistentFlags()
	fs.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig `file`; otherwise $KUBECONFIG or ~/.kube/config")
	fs.StringVar(&s.context, "context", "", "`name` of the context in the kubeconfig")
	fs.StringVarP(&s.namespace, "namespace", "n", "", "namespace; otherwise that of the context")
	fs.StringVarP(&s.output, "output", "o", "table", "`format` of the output: table, json or yaml")
	c.PersistentPreRunE = func(*cobra.Command, []string) error { return s.checkOutput() }
}

// MarkUsage makes the errors of flags and of the number of arguments a run.ErrUsage, for a command and those below it.
func MarkUsage(c *cobra.Command) {
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return run.ParseError(c.Flags(), err) })
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return run.Usagef("%v", err)
			}
			return nil
		}
	}
	for _, child := range c.Commands() {
		MarkUsage(child)
	}
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

func (s *session) checkOutput() error {
	if !slices.Contains([]string{"table", "text", "json", "yaml"}, s.output) {
		return run.Usagef("--output: unknown format %q: use table, json or yaml", s.output)
	}
	return nil
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

// print writes a value as JSON or YAML, or calls text. What could control a terminal is escaped in all.
func (s *session) print(value any, text func(w io.Writer) error) error {
	out := plain.NewWriter(s.out)
	switch s.output {
	case "yaml":
		content, err := yaml.Marshal(value)
		if err == nil {
			_, err = out.Write(content)
		}
		return err
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	return text(out)
}
