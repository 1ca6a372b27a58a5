package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/portico-platform/portico/internal/progress"
)

// What is in the folder of a backup.
const (
	manifestFile = "manifest.json"
	snapshotFile = "etcd.db"
	homeDir      = "home"
)

// formatVersion is the version of the folder's layout.
const formatVersion = 1

// manifest says what is in a backup.
type manifest struct {
	Version int       `json:"version"`
	Created time.Time `json:"created"`
	// Files are the SHA-256 of all other files, by their path.
	Files map[string]string `json:"files"`
	// contents are those of the main etcd.
	contents
	Overrides []override `json:"overrides,omitempty"`
	// Without are types that another etcd stores, which was left out.
	Without []string `json:"without,omitempty"`
}

// override is an etcd of --etcd-servers-overrides.
type override struct {
	Name string `json:"name"`
	// Types are the resource types that the flag names for it.
	Types []string `json:"types"`
	contents
}

// contents is what a database of etcd holds.
type contents struct {
	// Revision is etcd's newest, which clients see as resourceVersion.
	Revision int64 `json:"revision"`
	// Objects counts the objects of each resource type.
	Objects map[string]int `json:"objects"`

	// written is the newest revision of a key that is kept: compaction may have removed
	// the ones after it.
	written int64
	// record is what the main etcd says about overrides.
	record []byte
}

// database is the snapshot of one etcd.
type database struct {
	name string // of an override; empty for the main etcd
	file string
	*contents
}

// databases returns the main etcd and those of overrides, in the order of the manifest.
func (m *manifest) databases() []database {
	all := []database{{"", snapshotFile, &m.contents}}
	for i := range m.Overrides {
		o := &m.Overrides[i]
		all = append(all, database{o.Name, "etcd-" + o.Name + ".db", &o.contents})
	}
	return all
}

// database returns that of an override, or that of the main etcd if the name is empty.
func (m *manifest) database(name string) (database, error) {
	var names []string
	for _, d := range m.databases() {
		if d.name == name {
			return d, nil
		}
		names = append(names, d.name)
	}
	if len(names) == 1 {
		return database{}, usagef("--override: the backup has no etcd of an override")
	}
	return database{}, usagef("--override: the backup has no etcd %q, but these: %s", name, strings.Join(names[1:], ", "))
}

// String returns a line for people.
func (m *manifest) String() string {
	text := fmt.Sprintf("revision %d of %s: %s", m.Revision, m.Created.Format(time.RFC3339), m.contents)
	for _, o := range m.Overrides {
		text += fmt.Sprintf("; etcd %s, revision %d: %s", o.Name, o.Revision, o.contents)
	}
	if len(m.Without) > 0 {
		text += fmt.Sprintf("; without %s, which another etcd stores", strings.Join(m.Without, ", "))
	}
	if len(m.Overrides) > 0 {
		text += "; each etcd is consistent in itself, and they are not of one moment"
	}
	return text
}

// String returns how many objects there are.
func (c contents) String() string {
	total := 0
	for _, n := range c.Objects {
		total += n
	}
	return fmt.Sprintf("%d objects of %d types", total, len(c.Objects))
}

func readManifest(folder string) (*manifest, error) {
	content, err := os.ReadFile(filepath.Join(folder, manifestFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a backup: %w", folder, err)
	}
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(m); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.Version != formatVersion {
		return nil, fmt.Errorf("%s: version %d of the format, and this program knows version %d", manifestFile, m.Version, formatVersion)
	}
	named := map[string]bool{}
	for _, d := range m.databases() {
		if m.Files[d.file] == "" {
			return nil, fmt.Errorf("%s: %s is missing in the list of files", manifestFile, d.file)
		}
		if named[d.name] {
			return nil, fmt.Errorf("%s: two overrides are named %q", manifestFile, d.name)
		}
		named[d.name] = true
	}
	return m, nil
}

// hashFile returns the SHA-256 of a file. The bar counts its bytes.
func hashFile(ctx context.Context, path string, bar *progress.Bar) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := copyUntil(ctx, io.MultiWriter(hash, bar), f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// writeFile makes a file that is on the disk when it returns, for its owner alone.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes the entries of a folder durable.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
