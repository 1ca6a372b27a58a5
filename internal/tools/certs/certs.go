// Package certs is the command portico certs: it lists and revokes certificates that csr-signer
// has issued. docs/operations/certificates.md describes it.
package certs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/revocation"
)

// pageSize bounds the objects of one response.
const pageSize = 500

// Session is what the command needs of the program.
type Session struct {
	Config func() (*rest.Config, error)
	// Print writes a value as JSON, or calls text.
	Print func(value any, text func(w io.Writer) error) error
}

// issuedCertificate is a certificate in the output of certs list.
type issuedCertificate struct {
	revocation.Certificate
	// Expired and Revoked are about the present. A Revocation of a user, group or key revokes all
	// their certificates.
	Expired bool   `json:"expired"`
	Revoked bool   `json:"revoked"`
	Reason  string `json:"reason,omitempty"`
}

// Command returns the command.
func (s *Session) Command() *cobra.Command {
	c := &cobra.Command{Use: "certs", Short: "Lists and revokes certificates that csr-signer has issued"}
	c.AddCommand(s.listCertificates(), s.revokeCertificate())
	return c
}

// certificates is the client of IssuedCertificates and Revocations.
type certificates struct{ issued, revocations dynamic.ResourceInterface }

func (s *Session) certificates() (*certificates, error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	version := schema.GroupVersion{Group: revocation.Group, Version: revocation.Version}
	return &certificates{client.Resource(version.WithResource(revocation.CertificateResource)), client.Resource(version.WithResource(revocation.Resource))}, nil
}

func (s *Session) listCertificates() *cobra.Command {
	var user, signer, requester string
	var all bool
	c := &cobra.Command{
		Use: "list", Short: "Lists issued certificates, also of deleted requests", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			clients, err := s.certificates()
			if err != nil {
				return err
			}
			found, err := clients.list(c.Context(), time.Now(), func(i *issuedCertificate) bool {
				return (user == "" || i.CommonName == user) && (signer == "" || i.SignerName == signer) &&
					(requester == "" || i.Requester == requester) && (all || !i.Expired)
			})
			if err != nil {
				return err
			}
			return s.Print(map[string]any{"certificates": found}, func(w io.Writer) error { return s.write(w, found) })
		},
	}
	c.Flags().StringVar(&user, "user", "", "only certificates with this common `name`")
	c.Flags().StringVar(&signer, "signer", "", "only certificates of the signer with this `name`")
	c.Flags().StringVar(&requester, "requester", "", "only certificates that the user with this `name` requested")
	c.Flags().BoolVar(&all, "expired", false, "also expired certificates, which are kept for an hour")
	return c
}

// list returns the selected certificates, those that expire first before the others.
func (c *certificates) list(ctx context.Context, now time.Time, selected func(*issuedCertificate) bool) ([]issuedCertificate, error) {
	var specs []revocation.Spec
	if err := pages(ctx, c.revocations, func(raw []byte) error {
		spec, err := revocation.Decode(raw)
		specs = append(specs, spec)
		return err
	}); err != nil {
		return nil, err
	}
	set, found := revocation.NewSet(specs), []issuedCertificate{}
	err := pages(ctx, c.issued, func(raw []byte) error {
		certificate, err := revocation.DecodeCertificate(raw)
		i := issuedCertificate{Certificate: certificate, Expired: now.After(certificate.NotAfter)}
		if by := set.Revokes(certificate.Authentication(), now); by != nil {
			i.Revoked, i.Reason = true, by.Reason
		}
		if selected(&i) {
			found = append(found, i)
		}
		return err
	})
	slices.SortFunc(found, func(a, b issuedCertificate) int {
		if order := a.NotAfter.Compare(b.NotAfter); order != 0 {
			return order
		}
		return strings.Compare(a.Serial, b.Serial)
	})
	return found, err
}

// pages calls each with the JSON of all objects.
func pages(ctx context.Context, objects dynamic.ResourceInterface, each func([]byte) error) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := objects.List(ctx, options)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			raw, err := item.MarshalJSON()
			if err != nil {
				return err
			}
			if err := each(raw); err != nil {
				return fmt.Errorf("%s: %w", item.GetName(), err)
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func (s *Session) write(w io.Writer, found []issuedCertificate) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERIAL\tCOMMON NAME\tSIGNER\tREQUESTER\tREQUEST\tNOT BEFORE\tNOT AFTER\tSTATE")
	for _, i := range found {
		state := "valid"
		switch {
		case i.Revoked:
			state = "revoked: " + i.Reason
		case i.Expired:
			state = "expired"
		}
		columns := []string{i.Serial, i.CommonName, i.SignerName, i.Requester, i.Request.Name, i.NotBefore.UTC().Format(time.RFC3339), i.NotAfter.UTC().Format(time.RFC3339), state}
		for n, column := range columns {
			columns[n] = plain.Escape(column)
		}
		fmt.Fprintln(table, strings.Join(columns, "\t"))
	}
	return table.Flush()
}

func (s *Session) revokeCertificate() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "revoke SERIAL", Short: "Revokes an issued certificate with a Revocation that ends when the certificate expires", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return run.Usagef("--reason is required; it is stored in the Revocation")
			}
			serial := revocation.Canonical(args[0])
			if serial == "" {
				return fmt.Errorf("%q is not a serial number in hexadecimal, as in 1f:2e or 1f2e", args[0])
			}
			clients, err := s.certificates()
			if err != nil {
				return err
			}
			made, err := clients.revoke(c.Context(), serial, reason)
			if err != nil {
				return err
			}
			return s.Print(made, func(w io.Writer) error {
				_, err := plain.Fprintf(w, "%s is revoked by Revocation %s\n", serial, made["revocation"])
				return err
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason, as `text`")
	return c
}

// revoke makes the Revocation of a certificate, unless it exists.
func (c *certificates) revoke(ctx context.Context, serial, reason string) (map[string]any, error) {
	object, err := c.issued.Get(ctx, serial, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no certificate with the serial number %s was recorded: it has expired, or is older than the records; "+
			"a Revocation with this serial number can still revoke it", serial)
	}
	if err != nil {
		return nil, err
	}
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	certificate, err := revocation.DecodeCertificate(raw)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{"serial": serial, "reason": reason, "until": certificate.NotAfter.UTC().Format(time.RFC3339)}
	name := "certificate-" + serial
	_, err = c.revocations.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": revocation.Group + "/" + revocation.Version, "kind": revocation.Kind,
		"metadata": map[string]any{"name": name}, "spec": spec}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if err = c.exists(ctx, name, serial); err != nil {
			return nil, err
		}
	}
	return map[string]any{"serial": serial, "revocation": name}, err
}

// exists returns nil if the Revocation of a name revokes a serial number now.
func (c *certificates) exists(ctx context.Context, name, serial string) error {
	object, err := c.revocations.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	raw, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	spec, err := revocation.Decode(raw)
	if err == nil && (spec.Ended(time.Now()) || revocation.Canonical(spec.Serial) != serial) {
		err = fmt.Errorf("the Revocation %s exists and does not revoke the certificate: delete it first", name)
	}
	return err
}
