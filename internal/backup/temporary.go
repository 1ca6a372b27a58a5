package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/portico-platform/portico/internal/plain"
)

// lockName is the file of a temporary folder that its process holds locked: a folder with one that is
// not locked is left of a process that was killed.
const lockName = ".portico-unfinished"

// temporaryName matches the names of temporary folders: of the folder .NAME-RANDOM the NAME.
var temporaryName = regexp.MustCompile(`^\.(.+)-[0-9]+$`)

// target is a folder to make.
type target struct {
	folder string
	// aside is where what is there is moved; empty: there must be nothing, or an empty folder.
	aside string
	said  io.Writer
}

// make makes the folder by filling a temporary one beside it, which then gets its name.
// Nothing is left when it fails, or when ctx ends.
func (t target) make(ctx context.Context, fill func(temporary string) error) error {
	folder, err := filepath.Abs(t.folder)
	if err != nil {
		return err
	}
	there, err := exists(folder)
	if err == nil && there && t.aside == "" {
		err = fmt.Errorf("%s is not empty, and nothing is overwritten", folder)
	}
	if err != nil {
		return err
	}
	clearLeftovers(folder, t.said)
	temporary, err := os.MkdirTemp(filepath.Dir(folder), "."+filepath.Base(folder)+"-*")
	if err != nil {
		return err
	}
	mark := filepath.Join(temporary, lockName)
	if lock, err := fileutil.TryLockFile(mark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		defer lock.Close()
	} else { // some network file systems have no locks; without one it must not look like a leftover
		_ = os.Remove(mark)
	}
	err = fill(temporary)
	if err == nil {
		err = interrupted(ctx)
	}
	if err == nil {
		if err = os.Remove(mark); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = syncDir(temporary)
	}
	if err == nil {
		err = t.put(temporary, folder)
	}
	if err != nil {
		if left := os.RemoveAll(temporary); left != nil {
			err = errors.Join(err, fmt.Errorf("%s is left and has to be removed by hand: %w", temporary, left))
		}
		return err
	}
	return syncDir(filepath.Dir(folder))
}

// put gives the temporary folder its name. What is moved aside is what was there before the first attempt:
// an attempt that is repeated, with the same aside, replaces what the one before has made.
func (t target) put(temporary, folder string) error {
	if t.aside != "" {
		switch kept, err := exists(t.aside); {
		case err != nil:
			return err
		case kept:
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
		default:
			if err := os.Rename(folder, t.aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return os.Rename(temporary, folder) // fails when something has come into it meanwhile
}

// clearLeftovers removes the temporary folders beside a folder whose processes were killed, and names
// those that may be such.
func clearLeftovers(folder string, said io.Writer) {
	parent := filepath.Dir(folder)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // whoever makes the folder reports it
	}
	for _, entry := range entries {
		name := temporaryName.FindStringSubmatch(entry.Name())
		if name == nil || !entry.IsDir() {
			continue
		}
		path := filepath.Join(parent, entry.Name())
		switch removed, err := clearLeftover(path); {
		case removed:
			plain.Fprintf(said, "removed %s, which an interrupted run has left\n", path)
		case errors.Is(err, fileutil.ErrLocked): // another process fills it
		case errors.Is(err, fs.ErrNotExist):
			if there, _ := exists(path); there && name[1] == filepath.Base(folder) {
				plain.Fprintf(said, "%s may be left of an interrupted run: if none runs, remove it\n", path)
			}
		default:
			plain.Fprintf(said, "%s is left of an interrupted run and could not be removed: %v\n", path, err)
		}
	}
}

// clearLeftover removes a temporary folder if it has a lock that nobody holds. The error is
// fs.ErrNotExist without a lock, and ErrLocked while its process runs.
func clearLeftover(path string) (removed bool, err error) {
	mark := filepath.Join(path, lockName)
	info, err := os.Lstat(mark)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return false, err
	}
	lock, err := fileutil.TryLockFile(mark, os.O_WRONLY, 0o600)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if err := os.RemoveAll(path); err != nil {
		return false, err
	}
	return true, nil
}
