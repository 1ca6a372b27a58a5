package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/internal/home"
	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/services/kit/etcd"
)

func createFlags(flags *pflag.FlagSet) action {
	from := sourceFlags(flags)
	dated := flags.Bool("dated", false, "make a folder in FOLDER whose name is the time, as in 2026-01-31T02-00-00Z")
	keep := flags.Int("keep", 0, "with --dated, how many such `backups` to keep: older ones are removed when a new one is made; 0: all")
	return func(ctx context.Context, folder string, s streams) error {
		place, err := from()
		switch {
		case err != nil:
			return err
		case *keep < 0, *keep > 0 && !*dated:
			return usagef("--keep: needs --dated, and a number of backups")
		}
		in := folder
		if *dated {
			if err := os.MkdirAll(in, 0o700); err != nil {
				return err
			}
			folder = filepath.Join(in, time.Now().UTC().Format(datedName))
		}
		var made *manifest
		if err := (target{folder: folder, said: s.errs}).make(ctx, func(temporary string) error {
			made, err = create(ctx, temporary, place, s)
			return err
		}); err != nil {
			return err
		}
		if _, err = plain.Fprintf(s.out, "saved %s in %s\n", made, folder); err != nil || *keep == 0 {
			return err
		}
		return removeOld(in, *keep, s.out)
	}
}

// place is where a suite is: the sources of its snapshots, and its data folder if it has one.
type place struct {
	main      source
	overrides []overridden
	dataDir   string
	mainOnly  bool // leave out what other etcds store
}

// overridden is the source of the snapshot of an override.
type overridden struct {
	etcd.Override
	source source
}

// create fills the folder of a backup. The time that it names is before all snapshots.
func create(ctx context.Context, folder string, from place, s streams) (*manifest, error) {
	m := &manifest{Version: formatVersion, Created: time.Now().UTC().Truncate(time.Second), Files: map[string]string{}}
	sources := []source{from.main}
	for _, o := range from.overrides {
		one := override{Name: o.Name}
		for _, gr := range o.Types {
			one.Types = append(one.Types, gr.String())
		}
		m.Overrides, sources = append(m.Overrides, one), append(sources, o.source)
	}
	for i, d := range m.databases() {
		var err error
		if m.Files[d.file], err = d.save(ctx, folder, sources[i], s); err != nil {
			return nil, d.failed(err)
		}
		if d.name == "" {
			if err := m.compare(from); err != nil {
				return nil, err
			}
		}
	}
	if from.dataDir != "" {
		if err := saveHome(ctx, folder, from.dataDir, m.Files); err != nil {
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

// compare returns an error if the main etcd says that others store resources, and these are not saved.
// With mainOnly, it notes them.
func (m *manifest) compare(from place) error {
	recorded, err := etcd.ParseRecord(m.record)
	if err != nil {
		return err
	}
	saved := map[string]bool{}
	for _, o := range from.overrides {
		for _, gr := range o.Types {
			saved[etcd.FlagName(gr)] = true
		}
	}
	var others []string
	for _, o := range recorded {
		for _, name := range o.Types {
			if !saved[name] {
				m.Without = append(m.Without, name)
			}
		}
		others = append(others, o.String())
	}
	if len(m.Without) == 0 || from.mainOnly {
		return nil
	}
	return fmt.Errorf("the suite stores %s in other etcds, which would be missing: name them as the store does, with "+
		"'--etcd-servers-overrides=%s', or save the main etcd alone with --main-etcd-only", strings.Join(m.Without, ", "), strings.Join(others, ","))
}

// save takes the snapshot, checks it, notes what is in it and returns its SHA-256.
func (d database) save(ctx context.Context, folder string, from source, s streams) (sum string, err error) {
	var least int64
	snapshot := filepath.Join(folder, d.file)
	reading := s.bar(d.label("snapshot"), 0)
	defer reading.End()
	err = writeFile(snapshot, func(w io.Writer) (err error) {
		least, err = from(ctx, w, reading)
		return err
	})
	if err != nil {
		return "", err
	}
	reading.End()
	bar := s.bar(d.label("checking"), 3*sizeOf(snapshot)) // read three times
	defer bar.End()
	if err := checkSum(ctx, snapshot, bar); err != nil {
		return "", err
	}
	if *d.contents, err = inspect(ctx, snapshot, bar); err != nil {
		return "", err
	}
	if d.Revision < least {
		return "", fmt.Errorf("the snapshot is of revision %d, and etcd was at %d before", d.Revision, least)
	}
	return hashFile(ctx, snapshot, bar)
}

// label adds the name of an override to the label of a bar.
func (d database) label(text string) string { return strings.TrimSpace(text + " " + d.name) }

// failed adds the name of an override to an error.
func (d database) failed(err error) error {
	if d.name == "" {
		return err
	}
	return fmt.Errorf("etcd %s: %w", d.name, err)
}

// saveHome copies the files of an all-in-one's data folder that are as much part of the
// suite as its objects: keys, tokens and the vocabulary.
func saveHome(ctx context.Context, folder, dataDir string, hashes map[string]string) error {
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
		if hashes[filepath.ToSlash(saved)], err = hashFile(ctx, filepath.Join(folder, saved), nil); err != nil {
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
