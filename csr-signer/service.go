// Package csrsigner is the worker that signs approved CertificateSigningRequests of the
// built-in signers, and deletes requests an hour after their last change. It keeps a record
// of each certificate, and publishes which of them are revoked. It approves client
// certificates of nodes whose requester has the permission, and nothing else. It is a client
// of the public API, which authorizes its approvals and signatures. It serves "Built-in
// signers" and "CertificateSigningRequest" of the specification.
package csrsigner

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/csr-signer/internal/profile"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/revocation"
)

// The names of the controllers in --controllers; all are on by default.
const (
	signing   = "csrsigning"
	cleaning  = "csrcleaner"
	approving = "csrapproving"
)

const (
	// defaultDuration is the default lifetime of certificates: one year.
	defaultDuration = 365 * 24 * time.Hour
	// defaultLimit is the default number of certificates of one requester. Their records have
	// about 20 MB in the store.
	defaultLimit = 10_000
)

// Service describes csr-signer to the kit.
func Service() run.Service {
	return run.Service{
		Name:  "csr-signer",
		About: "issues certificates for certificate signing requests",
		Needs: []run.Dependency{worker.API},
		Flags: flags,
		Start: start,
	}
}

func flags(fs *pflag.FlagSet) {
	fs.String("cluster-signing-cert-file", "", "PEM file of the CA certificate of the built-in signers")
	fs.String("cluster-signing-key-file", "", "PEM file of its private key")
	expiry.Flags(fs, expiry.Own, "cluster-signing-cert-file")
	fs.Duration("cluster-signing-duration", defaultDuration, "lifetime of issued certificates, at most that of the CA certificate")
	fs.Int("max-certificates-per-requester", defaultLimit, "`number` of certificates that have not expired of one requester, after which nothing is signed for it; 0 for no limit")
	publicationFlags(fs)
}

func start(ctx context.Context, n *run.Node) error {
	ca, err := issuer(n.Flags)
	if err != nil {
		return err
	}
	published, err := readPublication(n.Flags)
	if err != nil {
		return err
	}
	if published.address != "" && ca == nil {
		return run.Usagef("--revocation-status-address needs --cluster-signing-cert-file and --cluster-signing-key-file")
	}
	config, err := worker.Config(ctx, n)
	if err != nil {
		return err
	}
	now := worker.NewClock(config, n.Log)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	cleans := worker.Enabled(n, cleaning, true)
	if !worker.Enabled(n, signing, true) {
		ca = nil
	} else if ca == nil {
		n.Log.Warn("nothing is signed: --cluster-signing-cert-file and --cluster-signing-key-file name no authority")
	}
	approves := worker.Enabled(n, approving, true)
	if ca == nil && !cleans && !approves {
		return nil
	}
	requests := client.Resource(schema.GroupVersionResource{
		Group: n.Vocabulary.Group("certificates."), Version: "v1", Resource: "certificatesigningrequests"})
	informer := worker.NewInformer(requests, "")
	s := &signer{requests: requests, profiles: profile.BuiltIn(n.Vocabulary, n.Release), authority: ca, cleans: cleans,
		clock: now, log: n.Log}
	if approves {
		s.approver = &approver{requests: requests, profile: s.profiles[n.Vocabulary.Signers.NodeClient], signer: n.Vocabulary.Signers.NodeClient,
			reviews: client.Resource(schema.GroupVersionResource{
				Group: n.Vocabulary.Group("authorization."), Version: "v1", Resource: "subjectaccessreviews"}),
			vocabulary: n.Vocabulary, denied: newDenials(now), log: n.Log}
	}
	if ca != nil {
		ca.now = now.Now
		if s.records, err = issue(n, ca, published, api{client, now}); err != nil {
			return err
		}
	}
	n.Health.Add(worker.Ready(n.Service, informer))
	worker.Go(n, "signing", s.controller(informer, now).Run)
	return nil
}

// api is a client of the API, and the clock that counts there.
type api struct {
	client dynamic.Interface
	clock  *worker.Clock
}

// issue starts what keeps the records of the certificates of an authority and, if flags say so,
// publishes which of them are revoked.
func issue(n *run.Node, ca *authority, published publication, of api) (*records, error) {
	limit, _ := n.Flags.GetInt("max-certificates-per-requester")
	if limit < 0 {
		return nil, run.Usagef("--max-certificates-per-requester: %d is less than 0", limit)
	}
	ca.lists, ca.responders = published.lists, published.responders
	resource := func(name string) dynamic.ResourceInterface {
		return of.client.Resource(schema.GroupVersionResource{Group: revocation.Group, Version: revocation.Version, Resource: name})
	}
	issued, err := newRecords(resource(revocation.CertificateResource), limit, of.clock, n.Log)
	if err != nil {
		return nil, err
	}
	n.Health.Add(worker.Ready("issued-certificates", issued.informer))
	worker.Go(n, "deleting records", worker.Controller{
		Name: "issuedcertificates", Informer: issued.informer, Reconcile: issued.reconcile, Clock: of.clock, Log: n.Log}.Run)
	if published.address == "" {
		return issued, nil
	}
	known, err := newRevocations(resource(revocation.Resource), issued, n.Log)
	if err != nil {
		return nil, err
	}
	return issued, published.start(n, ca, known)
}

// issuer returns the authority of the flags, nil if they name none.
func issuer(fs *pflag.FlagSet) (*authority, error) {
	duration, _ := fs.GetDuration("cluster-signing-duration")
	if duration <= 0 {
		return nil, run.Usagef("--cluster-signing-duration: %v is not a time that certificates can be valid", duration)
	}
	certificate, _ := fs.GetString("cluster-signing-cert-file")
	key, _ := fs.GetString("cluster-signing-key-file")
	if certificate == "" && key == "" {
		return nil, nil
	}
	if certificate == "" || key == "" {
		return nil, run.Usagef("--cluster-signing-cert-file and --cluster-signing-key-file need each other")
	}
	made, err := newAuthority(certificate, key, duration, time.Now)
	if err != nil {
		return nil, run.Usagef("--cluster-signing-cert-file, --cluster-signing-key-file: %v", err)
	}
	return made, nil
}
