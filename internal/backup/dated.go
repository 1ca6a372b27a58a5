package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/portico-platform/portico/internal/plain"
)

// datedName is the layout of the name of a backup that is named by its time: such names sort by time,
// and are names of files everywhere.
const datedName = "2006-01-02T15-04-05Z"

// removeOld removes the oldest backups of a folder that are named by their time, but for a number of them. It
// touches nothing else.
func removeOld(folder string, keep int, said io.Writer) error {
	entries, err := os.ReadDir(folder) // sorted by name
	if err != nil {
		return err
	}
	var backups []string
	for _, entry := range entries {
		if _, err := time.Parse(datedName, entry.Name()); err != nil || !entry.IsDir() {
			continue
		}
		if _, err := os.Lstat(filepath.Join(folder, entry.Name(), manifestFile)); err == nil {
			backups = append(backups, entry.Name())
		}
	}
	for _, name := range backups[:max(0, len(backups)-keep)] {
		if err := removeBackup(folder, name); err != nil {
			return fmt.Errorf("the new backup is made, but an old one could not be removed: %w", err)
		}
		plain.Fprintf(said, "removed the old %s\n", filepath.Join(folder, name))
	}
	return nil
}

// removeBackup removes a backup so that a part of it is never taken for one: it becomes a leftover first,
// which the next run removes if this one is killed.
func removeBackup(folder, name string) error {
	path, leftover := filepath.Join(folder, name), filepath.Join(folder, "."+name+"-0")
	mark, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = mark.Close()
	}
	// On a full disk there is no mark, and removing is what helps.
	if renamed := os.Rename(path, leftover); renamed != nil {
		return errors.Join(renamed, err)
	}
	return os.RemoveAll(leftover)
}
