// Package atrest encrypts the values of objects before they are stored in etcd, and
// decrypts them, as --encryption-provider-config says. The store and the watch hub use it
// with the same file. Keys in etcd are not encrypted, and neither is anything but objects.
//
// An encrypted value is bound to its key in etcd: moved to another key, it is refused. It
// serves "Persistence".
package atrest

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/etcd/atrest/internal/kms"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/reload"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// Prefix is the beginning of every encrypted value. It is followed by
	// <provider>:v1:<key>: and the encrypted bytes, or by kms:v2:<provider's name>:. Values
	// that are not encrypted begin with a brace.
	Prefix = "portico:enc:"
	// flag names the file.
	flag = "encryption-provider-config"
	// readEvery is the minimum interval between reads of the file.
	readEvery = time.Second
)

// Flags declares the flag that names the file.
func Flags(fs *pflag.FlagSet) {
	fs.String(flag, "", "`file` with an EncryptionConfiguration for objects in etcd; the store and the watch hub need the same")
}

// Values encrypts and decrypts. Nil encrypts nothing. It is safe for concurrent use.
type Values struct {
	files   *reload.Files[*config]
	plugins *kms.Providers
}

// Use returns the values for the flag of a process; nil if it is not set. The error is
// run.ErrUsage if the file is invalid. A file that becomes invalid later is logged, and the
// last valid one stays in use. It does not call KMS plugins, which Start does.
func Use(n *run.Node) (*Values, error) {
	path, err := n.Flags.GetString(flag)
	if err != nil || path == "" {
		return nil, err
	}
	values := &Values{plugins: kms.New(n.Log)}
	values.files, err = reload.Open(reload.Config[*config]{
		What: "the file of --" + flag, Paths: []string{path}, Every: readEvery, Log: n.Log,
		Parse: func(content [][]byte) (*config, error) { return parse(content[0], n.Vocabulary, values.plugins) },
	})
	if err != nil {
		return nil, run.Usagef("--%s: %s: %v", flag, path, err)
	}
	return values, nil
}

// Unreadable means that a value cannot be decrypted with the present configuration.
type Unreadable struct{ Reason error }

// Error returns the message, which names the key but no secret.
func (e *Unreadable) Error() string {
	return "the value in etcd cannot be decrypted: " + e.Reason.Error()
}

// Unwrap returns the reason.
func (e *Unreadable) Unwrap() error { return e.Reason }

// Transient reports whether a value is Unreadable because a KMS plugin does not answer, so that it may be
// readable soon.
func Transient(err error) bool {
	var unreadable *Unreadable
	return errors.As(err, &unreadable) && kms.Away(unreadable)
}

// Unsealed means that a value cannot be encrypted, because a KMS plugin does not work.
type Unsealed struct{ Reason error }

// Error returns the message.
func (e *Unsealed) Error() string { return "the value cannot be encrypted: " + e.Reason.Error() }

// Unwrap returns the reason.
func (e *Unsealed) Unwrap() error { return e.Reason }

// Seal returns the value to store at a path. The error is Unsealed.
func (v *Values) Seal(path string, value []byte) ([]byte, error) {
	if v == nil {
		return value, nil
	}
	rule := v.files.Get().ruleOf(path)
	if rule == nil || rule.keys[0].sealer == nil {
		return value, nil
	}
	first := rule.keys[0]
	sealed, err := first.sealer.seal(value, about(first, path))
	if err != nil {
		return nil, &Unsealed{err}
	}
	return append([]byte(first.prefix), sealed...), nil
}

// Open returns the value that was passed to Seal. The error is Unreadable.
func (v *Values) Open(path string, stored []byte) ([]byte, error) {
	if v == nil {
		if bytes.HasPrefix(stored, []byte(Prefix)) {
			return nil, &Unreadable{fmt.Errorf("it is encrypted, and --%s is not set", flag)}
		}
		return stored, nil
	}
	c := v.files.Get()
	value, err := c.open(path, stored)
	if err == nil {
		return value, nil
	}
	// Another process may have read a new file before this one.
	if next := v.files.Now(); next != c {
		value, err = next.open(path, stored)
	}
	if err != nil {
		return nil, &Unreadable{err}
	}
	return value, nil
}

// Rotates reports whether values at a path may be encrypted with another key than the
// present one.
func (v *Values) Rotates(path string) bool { return v != nil && v.files.Get().ruleOf(path) != nil }

// Stale reports whether a stored value is not encrypted as Seal would.
func (v *Values) Stale(path string, stored []byte) bool {
	if v == nil {
		return false
	}
	rule := v.files.Get().ruleOf(path)
	if rule == nil {
		return false
	}
	if rule.keys[0].sealer == nil {
		return bytes.HasPrefix(stored, []byte(Prefix))
	}
	sealed, ok := bytes.CutPrefix(stored, []byte(rule.keys[0].prefix))
	return !ok || rule.keys[0].sealer.stale(sealed)
}

// ruleOf returns the rule of the object at a path, nil if there is none.
func (c *config) ruleOf(path string) *rule {
	key, err := resource.ParsePath(path)
	if err != nil {
		return nil
	}
	return c.rule(key.GroupResource)
}

func (c *config) open(path string, stored []byte) ([]byte, error) {
	encrypted := bytes.HasPrefix(stored, []byte(Prefix))
	rule := c.ruleOf(path)
	if rule == nil {
		if encrypted {
			return nil, errors.New("it is encrypted, and the configuration does not list its resource")
		}
		return stored, nil
	}
	for _, k := range rule.keys {
		switch {
		case k.sealer == nil && !encrypted:
			return stored, nil
		case k.sealer != nil && bytes.HasPrefix(stored, []byte(k.prefix)):
			return k.sealer.open(stored[len(k.prefix):], about(k, path))
		}
	}
	if !encrypted {
		return nil, errors.New("it is not encrypted, and the provider identity is not listed for its resource")
	}
	return nil, fmt.Errorf("its key %.300q is not listed for its resource", name(stored))
}

// name returns the provider and the name of the key of an encrypted value.
func name(stored []byte) []byte {
	rest := stored[len(Prefix):]
	provider, rest, _ := bytes.Cut(rest, []byte(":v"))
	_, rest, _ = bytes.Cut(rest, []byte(":"))
	key, _, _ := bytes.Cut(rest, []byte(":"))
	return append(append(bytes.Clone(provider), ' '), key...)
}

// about is what a value is bound to: its key and its path.
func about(k key, path string) []byte { return []byte(k.prefix + path) }
