package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/internal/progress"
)

func verifyFlags(*pflag.FlagSet) action {
	return func(ctx context.Context, folder string, s streams) error {
		m, err := verify(ctx, folder, s)
		if err != nil {
			return err
		}
		for _, d := range m.databases() {
			if d.name != "" {
				plain.Fprintf(s.out, "etcd %s:\n", d.name)
			}
			for _, name := range slices.Sorted(maps.Keys(d.Objects)) {
				plain.Fprintf(s.out, "%8d %s\n", d.Objects[name], name)
			}
		}
		_, err = plain.Fprintf(s.out, "%s is whole: %s\n", folder, m)
		return err
	}
}

// verify checks all files of a backup and counts what is in its databases.
func verify(ctx context.Context, folder string, s streams) (*manifest, error) {
	m, err := readManifest(folder)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for _, d := range m.databases() {
		total += sizeOf(filepath.Join(folder, d.file))
	}
	bar := s.bar("checking", 3*total) // read three times
	defer bar.End()
	for name, want := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("%s names the file %q, which is outside of the backup", manifestFile, name)
		}
		got, err := hashFile(ctx, filepath.Join(folder, filepath.FromSlash(name)), bar)
		if err != nil {
			return nil, err
		}
		if got != want {
			return nil, fmt.Errorf("%s is not as it was saved: its SHA-256 is %s, not %s", name, got, want)
		}
	}
	for _, d := range m.databases() {
		if err := d.verify(ctx, folder, bar); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// verify compares a snapshot with what the manifest says.
func (d database) verify(ctx context.Context, folder string, bar *progress.Bar) error {
	snapshot := filepath.Join(folder, d.file)
	if err := checkSum(ctx, snapshot, bar); err != nil {
		return d.failed(err)
	}
	found, err := inspect(ctx, snapshot, bar)
	if err != nil {
		return d.failed(err)
	}
	if found.Revision != d.Revision {
		return fmt.Errorf("%s is at revision %d, and %s names %d", d.file, found.Revision, manifestFile, d.Revision)
	}
	if different := differences(d.Objects, found.Objects); different != "" {
		return fmt.Errorf("%s holds other objects than %s names: %s", d.file, manifestFile, different)
	}
	d.written = found.written
	return nil
}

// checkSum compares a snapshot with the SHA-256 that etcd has written after it: without
// it, it was cut short on its way.
func checkSum(ctx context.Context, path string, bar *progress.Bar) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size()%512 != sha256.Size {
		return errors.New("the snapshot is not whole: it does not end with its SHA-256")
	}
	hash, last := sha256.New(), make([]byte, sha256.Size)
	if _, err := copyUntil(ctx, io.MultiWriter(hash, bar), io.LimitReader(f, info.Size()-sha256.Size)); err != nil {
		return err
	}
	if _, err := io.ReadFull(f, last); err != nil {
		return err
	}
	if !bytes.Equal(hash.Sum(nil), last) {
		return errors.New("the snapshot is damaged: it is not what its SHA-256 says")
	}
	return nil
}

// sizeOf returns the size of a file; 0 if it cannot be read, which is an error elsewhere.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
