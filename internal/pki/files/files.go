// Package files changes the files of processes, of which each has a folder, so that a crash or a
// full disk leaves either all former files of a folder or all new ones: keys and the certificates
// that belong to them are never mixed for longer than the renames take, and if these are
// interrupted, Recover completes them. Readers that find a mixture keep what they have.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

const (
	lockFile = ".lock"
	// lockWait is how long Lock waits for another process. A remote authority may be slow.
	lockWait = time.Minute
	// unfinished is the prefix of what is being written and does not count yet.
	unfinished = ".new-"
	// decided is the folder of complete files that are being moved to the folder above it.
	decided = ".next"
)

// Hidden reports whether a name in the tree is of this package and no file of a process.
func Hidden(name string) bool {
	return name == lockFile || name == decided || strings.HasPrefix(name, unfinished)
}

// Lock excludes others that change the files below a folder, until the result is closed or the
// process ends. It waits for them, a minute at most.
func Lock(dir string) (io.Closer, error) {
	type locked struct {
		file *fileutil.LockedFile
		err  error
	}
	given, gone := make(chan locked), make(chan struct{})
	defer close(gone)
	go func() {
		file, err := fileutil.LockFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
		select {
		case given <- locked{file, err}:
		case <-gone:
			if err == nil {
				_ = file.Close()
			}
		}
	}()
	select {
	case l := <-given:
		if l.err != nil {
			return nil, l.err
		}
		return l.file, nil
	case <-time.After(lockWait):
		return nil, fmt.Errorf("%s is in use: another process has been changing it for %v", dir, lockWait)
	}
}

// Tree is a folder with a folder for each process. Only one goroutine may use it.
type Tree struct {
	dir string
	// Before is called before each change of the file system, which is not made if it fails. It is
	// nil except in tests.
	Before func(change string) error
	staged map[string]string // where the new files of a folder are, by its name
}

// New returns the tree of a folder.
func New(dir string) *Tree { return &Tree{dir: dir, staged: map[string]string{}} }

// Path returns where a file is, or a folder. Inside Replace, it is that of the new file.
func (t *Tree) Path(name string) string {
	folder, file, _ := strings.Cut(name, "/")
	if staging, ok := t.staged[folder]; ok {
		return filepath.Join(staging, filepath.FromSlash(file))
	}
	return filepath.Join(t.dir, filepath.FromSlash(name))
}

// Write writes a file atomically; only its owner may read it. If root writes it, it gets the
// owner of the folder.
func (t *Tree) Write(name string, content []byte) error {
	path := t.Path(name)
	dir := filepath.Dir(path)
	if err := t.makeDir(dir); err != nil {
		return err
	}
	if err := t.before("write " + path); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, unfinished) // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close(), setOwner(f.Name(), dir)); err != nil {
		return err
	}
	return t.rename(f.Name(), path)
}

// Replace makes a folder of what write writes to it, or replaces those files of the folder that
// write writes: all or, if there is an error, none.
func (t *Tree) Replace(folder string, write func() error) error {
	target := t.Path(folder)
	staging, committed := filepath.Join(target, unfinished+"files"), filepath.Join(target, decided)
	_, err := os.Lstat(target)
	isNew := errors.Is(err, os.ErrNotExist)
	if err != nil && !isNew {
		return err
	}
	if isNew {
		staging, committed = filepath.Join(t.dir, unfinished+folder), target
	}
	if err := t.makeDir(staging); err != nil {
		return err
	}
	t.staged[folder] = staging
	err = write()
	delete(t.staged, folder)
	if err == nil {
		err = t.rename(staging, committed)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(staging))
	}
	if isNew {
		return nil
	}
	return t.finish(target)
}

// Recover completes what an interrupted Replace has decided to replace, and removes the rest that
// it and Write have left. The caller has the lock.
func (t *Tree) Recover() error {
	left, err := t.Interrupted()
	if err != nil {
		return err
	}
	for _, name := range left {
		path := filepath.Join(t.dir, filepath.FromSlash(name))
		if filepath.Base(path) == decided {
			err = t.finish(filepath.Dir(path))
		} else if err = t.before("remove " + path); err == nil {
			err = os.RemoveAll(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Interrupted returns what Recover would complete or remove.
func (t *Tree) Interrupted() (left []string, err error) {
	for _, pattern := range []string{unfinished + "*", "*/" + unfinished + "*", "*/" + decided} {
		found, err := fs.Glob(os.DirFS(t.dir), pattern)
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	return left, nil
}

// finish moves the files that are decided to the folder above them. Keys come just before their
// certificates.
func (t *Tree) finish(target string) error {
	from := filepath.Join(target, decided)
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	slices.Reverse(entries)
	for _, e := range entries {
		if err := t.rename(filepath.Join(from, e.Name()), filepath.Join(target, e.Name())); err != nil {
			return err
		}
	}
	if err := t.before("remove " + from); err != nil {
		return err
	}
	return os.Remove(from)
}

// rename replaces a file or folder for good.
func (t *Tree) rename(from, to string) error {
	if err := t.before("rename " + to); err != nil {
		return err
	}
	return errors.Join(os.Rename(from, to), syncDir(filepath.Dir(to)))
}

// makeDir creates a folder, unless it exists.
func (t *Tree) makeDir(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	if err := t.before("make " + dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return setOwner(dir, filepath.Dir(dir))
}

func (t *Tree) before(change string) error {
	if t.Before == nil {
		return nil
	}
	return t.Before(change)
}
