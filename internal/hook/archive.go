package hook

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/portico-platform/portico/internal/pki/files"
)

// maxArchive bounds the unpacked size of an archive: a Secret contains at most 1 MiB, and
// the files of one suite are some dozens of certificates and keys.
const maxArchive = 8 << 20

// pack returns a folder with all its files as a compressed archive. The same files result in
// the same bytes.
func pack(dir string) ([]byte, error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	source := os.DirFS(dir)
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || files.Hidden(entry.Name()) {
			return err
		}
		content, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o600}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err := errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// unpack extracts an archive of pack to a new folder. It writes nothing outside the folder.
func unpack(dir string, packed []byte) error {
	compressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	limited := &io.LimitedReader{R: compressed, N: maxArchive}
	for archive := tar.NewReader(limited); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) && limited.N > 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackFile(root, header, archive); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

func unpackFile(root *os.Root, header *tar.Header, content io.Reader) error {
	if header.Typeflag != tar.TypeReg {
		return fmt.Errorf("an entry of type %q", header.Typeflag)
	}
	if err := root.MkdirAll(path.Dir(header.Name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(header.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
