package hook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portico-platform/portico/internal/pki"
	"github.com/portico-platform/portico/internal/plain"
)

// archiveKey is the key of the Secret with all identities, including the private keys of the
// authorities: no pod of the suite mounts it.
const archiveKey = "identities.tar.gz"

// identities creates or renews the identities of one suite.
type identities struct {
	dir, namespace, prefix string
	labels                 map[string]string
	site                   pki.Site
	within                 time.Duration
	secrets                typed.SecretInterface
	nats                   restarts
	out                    io.Writer
}

// identitiesFlags returns the command that stores the identities as Secrets: one with all
// of them, and one per process with its files.
func identitiesFlags(flags *pflag.FlagSet) func(context.Context, io.Writer) error {
	i := &identities{}
	flags.StringVar(&i.dir, "dir", "", "`folder` of the working files, which contain the private keys of the authorities and are removed at the end")
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig `file` of the cluster of the Secrets; the cluster of this pod if empty")
	flags.StringVar(&i.namespace, "namespace", "", "namespace of the Secrets")
	flags.StringVar(&i.prefix, "prefix", "portico-pki", "name of the Secret with all identities; the Secrets of processes are called PREFIX-PROCESS")
	flags.StringToStringVar(&i.labels, "labels", nil, "labels of the Secrets")
	flags.StringVar(&i.site.Server, "server", "", "`URL` at which the administrator reaches the front door")
	flags.StringVar(&i.site.WorkersServer, "workers-server", "", "`URL` at which the workers reach the front door; it cannot be changed later")
	flags.StringSliceVar(&i.site.FrontdoorHosts, "frontdoor-hosts", nil, "more `names` and addresses of the front door, separated by commas")
	flags.StringSliceVar(&i.site.EtcdMembers, "etcd-members", nil, "`hosts` of etcd's members")
	flags.StringSliceVar(&i.site.NATSServers, "nats-servers", nil, "`hosts` of the NATS servers")
	flags.DurationVar(&i.site.Validity.Duration, "validity", 365*24*time.Hour, "validity of certificates")
	flags.DurationVar(&i.site.AuthorityValidity.Duration, "authority-validity", 10*365*24*time.Hour, "validity of certificate authorities")
	flags.StringVar(&i.nats.name, "nats-statefulset", "", "`name` of the StatefulSet of the NATS servers, whose pods are restarted when their files change; empty: none are")
	flags.DurationVar(&i.within, "renew-within", 60*24*time.Hour, "renew certificates that expire within this time")
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
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		i.secrets, i.out = client.CoreV1().Secrets(i.namespace), out
		i.nats.sets, i.nats.out = client.AppsV1().StatefulSets(i.namespace), out
		return i.inNewFolder(ctx)
	}
}

// inNewFolder runs in a new folder below --dir, and removes it. The volume of a pod survives the
// restart of its container, so that a retry may find what a failed run has left there.
func (i *identities) inNewFolder(ctx context.Context) (err error) {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(i.dir, "run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	i.dir = filepath.Join(folder, "pki")
	return i.run(ctx)
}

// run creates missing identities and updates existing ones. It stores the Secret with all
// identities before it writes the Secrets of the processes.
func (i *identities) run(ctx context.Context) error {
	existing, err := i.secrets.Get(ctx, i.prefix, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if err := pki.Init(i.dir, i.site); err != nil {
			return err
		}
		existing = nil
	} else if err != nil {
		return err
	} else if err := i.restore(ctx, existing); err != nil {
		return fmt.Errorf("the Secret %s: %w", i.prefix, err)
	}
	packed, err := pack(i.dir)
	if err != nil {
		return err
	}
	all := map[string][]byte{archiveKey: packed}
	if existing == nil {
		// Of two concurrent runs the second fails here; its retry finds the identities of the first.
		_, err = i.secrets.Create(ctx, i.secret(i.prefix, all), metav1.CreateOptions{})
	} else if !bytes.Equal(existing.Data[archiveKey], packed) {
		existing.Data = all // with the resourceVersion that was read
		_, err = i.secrets.Update(ctx, existing, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	if err := i.writeSecrets(ctx); err != nil {
		return err
	}
	checksum, err := i.natsChecksum()
	if err != nil {
		return err
	}
	return i.nats.restart(ctx, checksum)
}

// natsChecksum returns the checksum of the files of all NATS servers of the site.
func (i *identities) natsChecksum() (string, error) {
	hash := sha256.New()
	for _, server := range i.site.NATSServers {
		files, err := readFolder(filepath.Join(i.dir, server))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a server that the identities do not have yet
		}
		if err != nil {
			return "", err
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(hash, "%s/%s %d\n%s", server, name, len(files[name]), files[name])
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// restore unpacks the identities, adds those of a newer release and of new members of the
// site, and renews certificates.
func (i *identities) restore(ctx context.Context, existing *corev1.Secret) error {
	if err := unpack(i.dir, existing.Data[archiveKey]); err != nil {
		return err
	}
	before, err := i.natsChecksum()
	if err != nil {
		return err
	}
	if err := i.nats.record(ctx, before); err != nil {
		return err
	}
	p, err := pki.Edit(i.dir)
	if err != nil {
		return err
	}
	return errors.Join(i.update(p), p.Close())
}

func (i *identities) update(p *pki.PKI) error {
	for _, update := range []func() ([]string, error){
		p.Complete,
		func() ([]string, error) { return p.UpdateSite(i.site) },
	} {
		changed, err := update()
		if err != nil {
			return err
		}
		for _, what := range changed {
			plain.Fprintf(i.out, "created %s\n", what)
		}
	}
	renewed, ending, err := p.Renew(i.within)
	for _, r := range renewed {
		plain.Fprintf(i.out, "renewed %s until %s\n", r.File, r.Until.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return err
	}
	for _, authority := range ending {
		plain.Fprintf(i.out, "the authority %q expires within %v: create new identities\n", authority, i.within)
	}
	return nil
}

// writeSecrets writes the Secret of each process of the site. Secrets of former members
// stay unchanged.
func (i *identities) writeSecrets(ctx context.Context) error {
	p, err := pki.Open(i.dir)
	if err != nil {
		return err
	}
	for _, name := range p.Folders() {
		files, err := readFolder(filepath.Join(i.dir, name))
		if err != nil {
			return err
		}
		if err := i.writeSecret(ctx, i.prefix+"-"+name, files); err != nil {
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

// writeSecret creates or updates a Secret, unless it is up to date.
func (i *identities) writeSecret(ctx context.Context, name string, files map[string][]byte) error {
	_, err := i.secrets.Create(ctx, i.secret(name, files), metav1.CreateOptions{})
	if err == nil {
		_, err = plain.Fprintf(i.out, "created the Secret %s\n", name)
		return err
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing, err := i.secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if existing.Type != corev1.SecretTypeOpaque {
		return fmt.Errorf("the Secret %s has the type %q: it was not created by this command", name, existing.Type)
	}
	if maps.EqualFunc(existing.Data, files, bytes.Equal) {
		return nil
	}
	existing.Data = files
	if _, err := i.secrets.Update(ctx, existing, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, err = plain.Fprintf(i.out, "updated the Secret %s\n", name)
	return err
}

func (i *identities) secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: i.labels}, Type: corev1.SecretTypeOpaque, Data: data}
}
