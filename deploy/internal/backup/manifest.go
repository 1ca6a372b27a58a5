package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/portico-platform/portico/deploy/internal/progress"
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
}

// String returns a line for people.
func (m *manifest) String() string {
	total := 0
	for _, n := range m.Objects {
		total += n
	}
	return fmt.Sprintf("revision %d of %s: %d objects of %d types", m.Revision, m.Created.Format(time.RFC3339), total, len(m.Objects))
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
	if m.Files[snapshotFile] == "" {
		return nil, fmt.Errorf("%s: %s is missing in the list of files", manifestFile, snapshotFile)
	}
	return m, nil
}

// hashFile returns the SHA-256 of a file. The bar counts its bytes.
func hashFile(path string, bar *progress.Bar) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(hash, bar), f); err != nil {
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
	err = write(f)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes the entries of a folder durable.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
