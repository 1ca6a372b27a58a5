//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"
)

// setOwner gives a file the owner of its folder, if the process runs as root. So a folder
// that belongs to the user of a container stays readable for that user.
func setOwner(file, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return os.Lchown(file, int(stat.Uid), int(stat.Gid))
	}
	return nil
}

// syncDir writes the names of a folder to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
