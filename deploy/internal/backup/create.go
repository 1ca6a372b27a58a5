package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/deploy/internal/home"
)

func createFlags(flags *pflag.FlagSet) action {
	from := sourceFlags(flags)
	return func(ctx context.Context, folder string, s streams) error {
		source, dataDir, err := from()
		if err != nil {
			return err
		}
		var made *manifest
		if err := whole(folder, func(temporary string) error {
			made, err = create(ctx, temporary, place{source, dataDir}, s)
			return err
		}); err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.out, "saved %s in %s\n", made, folder)
		return err
	}
}

// whole makes a folder by filling a temporary one beside it, which then gets its name.
// Nothing is left when it fails. The folder must not exist, or be empty.
func whole(folder string, fill func(temporary string) error) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if there, err := exists(folder); err != nil || there {
		return errors.Join(err, fmt.Errorf("%s is not empty, and nothing is overwritten", folder))
	}
	temporary, err := os.MkdirTemp(filepath.Dir(folder), "."+filepath.Base(folder)+"-*")
	if err != nil {
		return err
	}
	if err = fill(temporary); err == nil {
		err = syncDir(temporary)
	}
	if err == nil {
		err = os.Rename(temporary, folder) // fails when something has come into it meanwhile
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temporary))
	}
	return syncDir(filepath.Dir(folder))
}

// place is where a suite is: the source of its snapshot, and its data folder if it has one.
type place struct {
	source  source
	dataDir string
}

// create fills the folder of a backup. The time that it names is before the snapshot.
func create(ctx context.Context, folder string, from place, s streams) (*manifest, error) {
	m := &manifest{Version: formatVersion, Created: time.Now().UTC().Truncate(time.Second), Files: map[string]string{}}
	var least int64
	snapshot := filepath.Join(folder, snapshotFile)
	reading := s.bar("snapshot", 0)
	defer reading.End()
	err := writeFile(snapshot, func(w io.Writer) (err error) {
		least, err = from.source(ctx, w, reading)
		return err
	})
	if err != nil {
		return nil, err
	}
	reading.End()
	bar := s.bar("checking", 3*sizeOf(snapshot)) // read three times
	defer bar.End()
	if err := checkSum(snapshot, bar); err != nil {
		return nil, err
	}
	if m.contents, err = inspect(snapshot, bar); err != nil {
		return nil, err
	}
	if m.Revision < least {
		return nil, fmt.Errorf("the snapshot is of revision %d, and etcd was at %d before", m.Revision, least)
	}
	if m.Files[snapshotFile], err = hashFile(snapshot, bar); err != nil {
		return nil, err
	}
	if from.dataDir != "" {
		if err := saveHome(folder, from.dataDir, m.Files); err != nil {
			return nil, err
		}
	}
	content, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	return m, writeFile(filepath.Join(folder, manifestFile), func(w io.Writer) error {
		_, err := w.Write(append(content, '\n'))
		return err
	})
}

// saveHome copies the files of an all-in-one's data folder that are as much part of the
// suite as its objects: keys, tokens and the vocabulary.
func saveHome(folder, dataDir string, hashes map[string]string) error {
	for _, name := range home.Files() {
		content, err := os.ReadFile(filepath.Join(dataDir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // the user has files of their own for it
		}
		if err != nil {
			return err
		}
		saved := filepath.Join(homeDir, name)
		if err := putFile(folder, saved, content); err != nil {
			return err
		}
		if hashes[filepath.ToSlash(saved)], err = hashFile(filepath.Join(folder, saved), nil); err != nil {
			return err
		}
	}
	return nil
}

// putFile makes a file below a folder, and the folders between.
func putFile(folder, name string, content []byte) error {
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return writeFile(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
