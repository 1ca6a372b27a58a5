// Package clienttrust publishes how this API authenticates its clients and the proxies
// before it, in the ConfigMap that extensions of the API read, so that they trust the same
// certificates. Front doors with other settings add theirs; none removes those of another
// one. It serves section "Authentication" of the specification.
package clienttrust

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// name is the name of the ConfigMap.
	name = "extension-apiserver-authentication"
	// passEvery is how often the files are read and the ConfigMap is compared with them.
	passEvery = 10 * time.Second
	// maxBundle bounds the certificates of one key, far below what a ConfigMap holds.
	maxBundle = 256 << 10
)

// Config configures a Keeper.
type Config struct {
	Vocabulary vocabulary.Vocabulary
	Writes     *writes.Handlers
	// Engine returns the currently served types.
	Engine func() *typesystem.Engine
	// ClientAuthorities and ProxyAuthorities are the files (PEM) of the authorities of
	// clients and of proxies; without the latter, nothing about proxies is published.
	ClientAuthorities, ProxyAuthorities []string
	// AllowedNames are the common names of proxies.
	AllowedNames []string
	// UserHeaders, GroupHeaders and ExtraPrefixes are the headers in which proxies name
	// users.
	UserHeaders, GroupHeaders, ExtraPrefixes []string
	Log                                      *slog.Logger
}

// Keeper keeps the ConfigMap up to date.
type Keeper struct {
	Config
	now func() time.Time
}

// New returns a Keeper. The caller must call Run.
func New(c Config) *Keeper { return &Keeper{Config: c, now: time.Now} }

// Run keeps the ConfigMap up to date until ctx ends, and then returns nil.
func (k *Keeper) Run(ctx context.Context) error {
	retry.Every(ctx, passEvery, k.pass, func(err error) {
		k.Log.Warn("publishing how clients are authenticated failed, retrying", "error", err)
	})
	return nil
}

// Keys of the ConfigMap.
const (
	keyClients = "client-ca-file"
	keyProxies = "requestheader-client-ca-file"
	keyNames   = "requestheader-allowed-names"
	keyUsers   = "requestheader-username-headers"
	keyGroups  = "requestheader-group-headers"
	keyExtras  = "requestheader-extra-headers-prefix"
)

// pass writes the ConfigMap if it lacks something.
func (k *Keeper) pass(ctx context.Context) error {
	clients, err := read(k.ClientAuthorities)
	if err != nil {
		return err
	}
	proxies, err := read(k.ProxyAuthorities)
	if err != nil {
		return err
	}
	merge := func(object map[string]any) error {
		data := tree.Object(object, "data")
		k.addCertificates(data, keyClients, clients)
		if len(proxies) == 0 {
			return nil
		}
		k.addCertificates(data, keyProxies, proxies)
		for key, texts := range map[string][]string{keyNames: k.AllowedNames, keyUsers: k.UserHeaders, keyGroups: k.GroupHeaders, keyExtras: k.ExtraPrefixes} {
			if err := addTexts(data, key, texts); err != nil {
				return err
			}
		}
		return nil
	}
	return k.Writes.Ensure(ctx, k.Engine(), map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": k.Vocabulary.Namespace("system")}}, merge)
}

// read returns the content of files, and an error for one that holds no certificate.
func read(paths []string) (all []byte, err error) {
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if len(parse(content)) == 0 {
			return nil, errors.New(path + " has no certificate")
		}
		all = slices.Concat(all, content, []byte("\n"))
	}
	return all, nil
}

// addTexts adds texts to the JSON list under a key. What is no such list is replaced.
func addTexts(data map[string]any, key string, texts []string) error {
	before, _ := data[key].(string)
	merged := []string{}
	_ = json.Unmarshal([]byte(before), &merged)
	missing := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return slices.Contains(merged, text) })
	if merged = append(merged, missing...); len(missing) == 0 && json.Valid([]byte(before)) && len(merged) > 0 {
		return nil
	}
	raw, err := json.Marshal(merged)
	data[key] = string(raw)
	return err
}
