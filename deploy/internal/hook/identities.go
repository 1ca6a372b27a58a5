package hook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portico-platform/portico/deploy/internal/pki"
)

// archiveKey is the key of the Secret with all identities, among them the keys of the
// authorities: no pod of the suite sees it.
const archiveKey = "identities.tar.gz"

// identities makes or renews the identities of one suite.
type identities struct {
	dir, namespace, prefix string
	labels                 map[string]string
	site                   pki.Site
	within                 time.Duration
	secrets                typed.SecretInterface
	out                    io.Writer
}

// identitiesFlags returns the command that keeps the identities as Secrets: one with all
// of them, and one with the files of each process.
func identitiesFlags(flags *pflag.FlagSet) func(context.Context, io.Writer) error {
	i := &identities{}
	flags.StringVar(&i.dir, "dir", "", "`folder` to work in; it must not exist, and holds keys of authorities")
	kubeconfig := flags.String("kubeconfig", "", "`file` that says where the Secrets are; the cluster of this pod when empty")
	flags.StringVar(&i.namespace, "namespace", "", "namespace of the Secrets")
	flags.StringVar(&i.prefix, "prefix", "portico-pki", "name of the Secret with all identities; those of processes have a dash and their name behind it")
	flags.StringToStringVar(&i.labels, "labels", nil, "labels of the Secrets")
	flags.StringVar(&i.site.Server, "server", "", "`URL` at which the administrator reaches the front door")
	flags.StringVar(&i.site.WorkersServer, "workers-server", "", "`URL` at which the workers reach the front door; it stays the same")
	flags.StringSliceVar(&i.site.FrontdoorHosts, "frontdoor-hosts", nil, "more `names` and addresses of the front door, with commas between")
	flags.StringSliceVar(&i.site.EtcdMembers, "etcd-members", nil, "`hosts` of etcd's members")
	flags.StringSliceVar(&i.site.NATSServers, "nats-servers", nil, "`hosts` of the NATS servers")
	flags.DurationVar(&i.site.Validity.Duration, "validity", 365*24*time.Hour, "how long certificates are good")
	flags.DurationVar(&i.site.AuthorityValidity.Duration, "authority-validity", 10*365*24*time.Hour, "how long authorities are good")
	flags.DurationVar(&i.within, "renew-within", 60*24*time.Hour, "renew what expires within this time")
	return func(ctx context.Context, out io.Writer) error {
		for name, value := range map[string]string{"dir": i.dir, "namespace": i.namespace, "prefix": i.prefix} {
			if value == "" {
				return fmt.Errorf("%w: --%s is required", errUsage, name)
			}
		}
		config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
		if err != nil {
			return err
		}
		client, err := typed.NewForConfig(config)
		if err != nil {
			return err
		}
		i.secrets, i.out = client.Secrets(i.namespace), out
		return i.run(ctx)
	}
}

// run makes the identities where there are none, and brings those that are there up to
// date. All of them are kept before any of them is handed out.
func (i *identities) run(ctx context.Context) error {
	kept, err := i.secrets.Get(ctx, i.prefix, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if err := pki.Init(i.dir, i.site); err != nil {
			return err
		}
		kept = nil
	} else if err != nil {
		return err
	} else if err := i.restore(kept); err != nil {
		return fmt.Errorf("the Secret %s: %w", i.prefix, err)
	}
	packed, err := pack(i.dir)
	if err != nil {
		return err
	}
	all := map[string][]byte{archiveKey: packed}
	if kept == nil {
		// Whoever comes second fails here, and finds the identities of the first next time.
		_, err = i.secrets.Create(ctx, i.secret(i.prefix, all), metav1.CreateOptions{})
	} else if !bytes.Equal(kept.Data[archiveKey], packed) {
		kept.Data = all // with the resourceVersion that was read
		_, err = i.secrets.Update(ctx, kept, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	return i.handOut(ctx)
}

// restore unpacks the identities, adds what is new in the site, and renews.
func (i *identities) restore(kept *corev1.Secret) error {
	if err := unpack(i.dir, kept.Data[archiveKey]); err != nil {
		return err
	}
	p, err := pki.Open(i.dir)
	if err != nil {
		return err
	}
	changed, err := p.Resite(i.site)
	if err != nil {
		return err
	}
	for _, what := range changed {
		fmt.Fprintf(i.out, "made %s\n", what)
	}
	renewed, ending, err := p.Renew(i.within)
	for _, r := range renewed {
		fmt.Fprintf(i.out, "renewed %s until %s\n", r.File, r.Until.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return err
	}
	for _, authority := range ending {
		fmt.Fprintf(i.out, "the authority %q expires within %v: make new identities\n", authority, i.within)
	}
	return nil
}

// handOut writes the Secret of each process of the site. Secrets of former members stay
// as they are.
func (i *identities) handOut(ctx context.Context) error {
	p, err := pki.Open(i.dir)
	if err != nil {
		return err
	}
	for _, name := range p.Folders() {
		files, err := readFolder(filepath.Join(i.dir, name))
		if err != nil {
			return err
		}
		if err := i.keep(ctx, i.prefix+"-"+name, files); err != nil {
			return err
		}
	}
	return nil
}

func readFolder(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// keep creates or updates a Secret, unless it is as it should be.
func (i *identities) keep(ctx context.Context, name string, files map[string][]byte) error {
	_, err := i.secrets.Create(ctx, i.secret(name, files), metav1.CreateOptions{})
	if err == nil {
		_, err = fmt.Fprintf(i.out, "created the Secret %s\n", name)
		return err
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there, err := i.secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if there.Type != corev1.SecretTypeOpaque {
		return fmt.Errorf("the Secret %s has the type %q: it is not from here", name, there.Type)
	}
	if maps.EqualFunc(there.Data, files, bytes.Equal) {
		return nil
	}
	there.Data = files
	if _, err := i.secrets.Update(ctx, there, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(i.out, "updated the Secret %s\n", name)
	return err
}

func (i *identities) secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: i.labels}, Type: corev1.SecretTypeOpaque, Data: data}
}
