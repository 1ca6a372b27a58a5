package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/internal/plain"
)

const (
	// bumpLeast and bumpPerSecond make revisions of a restored suite larger than all that
	// the lost one can have reached since the backup: etcd writes far less in a second.
	bumpLeast     = 1_000_000
	bumpPerSecond = 100_000
	// clockSkew is how far clocks may differ that a backup sees on its way.
	clockSkew = 5 * time.Minute
)

// restoration is what one call of restore makes.
type restoration struct {
	dataDir, etcdDir string
	override         string        // the etcd to restore; empty for the main one
	cluster          types.URLsMap // peer URLs of the members, by their names
	bump             int64
	member           string    // the only one to make; empty for all
	at               time.Time // of the restoration
	replace          bool
}

func restoreFlags(flags *pflag.FlagSet) action {
	r := &restoration{}
	flags.StringVar(&r.dataDir, "data-dir", "", "data `folder` of an all-in-one to make; it must not exist, or be empty")
	flags.StringVar(&r.etcdDir, "etcd-data-dir", "", "`folder` to make with a data folder for each member of an etcd cluster; it must not exist, or be empty")
	flags.StringVar(&r.override, "override", "", "`name` of the etcd of an override in the backup, as in events, to restore instead of the main etcd; needs --etcd-data-dir")
	cluster := flags.String("initial-cluster", "", "names and peer `URLs` of all members, as in etcd-1=https://etcd-1:2380,etcd-2=https://etcd-2:2380")
	flags.Int64Var(&r.bump, "bump-revision", 0, "how many `revisions` to skip; 0: more than can have been written since the backup was made")
	flags.StringVar(&r.member, "member", "", "`name` of the only member to make, whose data folder is then --etcd-data-dir itself; needs --at")
	at := flags.String("at", "", "`time` of the restoration, as in 2026-01-31T09:00:00Z: the same for all members that are made one by one")
	flags.BoolVar(&r.replace, "replace", false, "with --member, move what is at --etcd-data-dir to a folder beside it, whose name ends with -before-TIME; etcd must not run on it")
	return func(ctx context.Context, folder string, s streams) (err error) {
		if err := r.parseMember(*at, flags.Changed("at")); err != nil {
			return err
		}
		switch {
		case (r.dataDir == "") == (r.etcdDir == ""):
			return usagef("either --data-dir or --etcd-data-dir says what to make")
		case (r.etcdDir == "") != (*cluster == ""):
			return usagef("--etcd-data-dir and --initial-cluster belong together")
		case r.override != "" && r.etcdDir == "":
			return usagef("--override needs --etcd-data-dir: an all-in-one has no etcd of an override in its data folder")
		case r.bump < 0:
			return usagef("--bump-revision: %d would go back", r.bump)
		}
		if r.cluster, err = types.NewURLsMap(*cluster); err != nil {
			return usagef("--initial-cluster: %v", err)
		}
		for name := range r.cluster {
			if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
				return usagef("--initial-cluster: %q is no name of a folder", name)
			}
		}
		if r.member != "" && r.cluster[r.member] == nil {
			return usagef("--member: %q is not in --initial-cluster", r.member)
		}
		m, err := verify(ctx, folder, s)
		if err != nil {
			return err
		}
		return r.run(ctx, folder, m, s)
	}
}

// parseMember checks the flags of a member that is made alone.
func (r *restoration) parseMember(at string, given bool) (err error) {
	switch {
	case (r.member != "") != given:
		return usagef("--member and --at belong together")
	case r.replace && r.member == "":
		return usagef("--replace needs --member")
	case r.member != "" && r.etcdDir == "":
		return usagef("--member needs --etcd-data-dir")
	case !given:
		r.at = time.Now()
	default:
		if r.at, err = time.Parse(time.RFC3339, at); err != nil {
			return usagef("--at: %v", err)
		}
	}
	return nil
}

// run makes the folders of a backup that was verified.
func (r *restoration) run(ctx context.Context, folder string, m *manifest, s streams) error {
	bump, err := r.skip(m, r.at)
	if err != nil {
		return err
	}
	d, err := m.database(r.override)
	if err != nil {
		return err
	}
	// A cluster with another id is another one to all who knew the lost one.
	g := goal{database: d, files: m.Files, folder: folder, revision: d.Revision + bump, token: "restored-" + rand.Text(), streams: s}
	if err := r.make(ctx, g); err != nil {
		return err
	}
	what, others := "the main etcd", []string{}
	if d.name != "" {
		what = "etcd " + d.name
	}
	for _, other := range m.databases() {
		if other.name != "" && other.name != d.name {
			others = append(others, "--override="+other.name)
		}
	}
	plain.Fprintf(s.out, "restored %s, revision %d of %s: %s, in %s; it goes on after revision %d\n",
		what, d.Revision, m.Created.Format(time.RFC3339), d.contents, r.dataDir+r.etcdDir, g.revision)
	if len(m.Without) > 0 {
		plain.Fprintf(s.out, "the backup is without %s, which another etcd stored\n", strings.Join(m.Without, ", "))
	}
	if len(others) > 0 {
		plain.Fprintf(s.out, "the backup also has other etcds, which are restored on their own: %s\n", strings.Join(others, ", "))
	}
	return nil
}

// make makes what was asked for.
func (r *restoration) make(ctx context.Context, g goal) error {
	t := target{folder: r.dataDir + r.etcdDir, said: g.streams.errs}
	switch {
	case r.dataDir != "":
		return t.make(ctx, func(temporary string) error { return g.restoreHome(ctx, temporary) })
	case r.member == "":
		return t.make(ctx, func(temporary string) error {
			for name := range r.cluster {
				if err := g.restore(ctx, filepath.Join(temporary, name), name, r.cluster); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		})
	}
	// Each member is made by a process of its own, and all are of one cluster.
	sum := sha256.Sum256(fmt.Append(nil, g.name, g.files, r.at.Unix()))
	g.token = "restored-" + hex.EncodeToString(sum[:16])
	if r.replace {
		if err := unused(r.etcdDir); err != nil {
			return err
		}
		t.aside = filepath.Clean(r.etcdDir) + "-before-" + r.at.UTC().Format(datedName)
	}
	return t.make(ctx, func(temporary string) error {
		made := filepath.Join(temporary, r.member) // etcd's library wants an empty folder
		if err := g.restore(ctx, made, r.member, r.cluster); err != nil {
			return err
		}
		return errors.Join(os.Rename(filepath.Join(made, "member"), filepath.Join(temporary, "member")), os.Remove(made))
	})
}

// unused returns an error if an etcd of this machine uses a data folder.
func unused(dir string) error {
	database := filepath.Join(dir, "member", "snap", "db")
	if sizeOf(database) == 0 {
		return nil
	}
	db, err := bolt.Open(database, 0o400, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return fmt.Errorf("an etcd runs on %s: stop it first", dir)
	}
	if err != nil {
		return nil // it is damaged, which may be why it is replaced
	}
	return db.Close()
}

// skip returns how many revisions to skip.
func (r *restoration) skip(m *manifest, now time.Time) (int64, error) {
	if r.bump > 0 {
		return r.bump, nil
	}
	age := now.Sub(m.Created)
	if age < -clockSkew {
		return 0, fmt.Errorf("the backup was made at %s, which has not come yet: a clock is wrong, so choose --bump-revision", m.Created.Format(time.RFC3339))
	}
	return bumpLeast + bumpPerSecond*int64(max(0, age).Seconds()), nil
}

// goal is what a restored etcd has to hold: what is in the folder of a backup, from a
// revision on, in a cluster of its own.
type goal struct {
	database
	files         map[string]string // of the manifest
	folder, token string
	revision      int64
	streams       streams
}

// restoreHome makes the data folder of an all-in-one.
func (g goal) restoreHome(ctx context.Context, dir string) error {
	for name := range g.files {
		local, ok := strings.CutPrefix(name, homeDir+"/")
		if !ok {
			continue
		}
		content, err := os.ReadFile(filepath.Join(g.folder, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if err := putFile(dir, filepath.FromSlash(local), content); err != nil {
			return err
		}
	}
	cluster, err := types.NewURLsMap("portico=http://localhost:2380")
	if err != nil {
		return err
	}
	return g.restore(ctx, filepath.Join(dir, "etcd"), "portico", cluster)
}

// restore makes the data folder of a member of etcd, and reads what is in it.
func (g goal) restore(ctx context.Context, dir, name string, cluster types.URLsMap) error {
	saved, restored := filepath.Join(g.folder, g.file), filepath.Join(dir, "member", "snap", "db")
	bar := g.streams.bar("restoring "+name, 2*sizeOf(saved)) // written and read
	defer bar.End()
	written := bar.Follow(func() int64 { return sizeOf(restored) })
	err := uninterruptible(ctx, func() error {
		return snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
			SnapshotPath: saved, Name: name, OutputDataDir: dir,
			PeerURLs: cluster[name].StringSlice(), InitialCluster: cluster.String(), InitialClusterToken: g.token,
			RevisionBump: uint64(g.revision - g.written), MarkCompacted: true,
		})
	}, func() { _ = os.RemoveAll(dir) }) // it fails without its files; what it makes after that goes with the folder above
	written()
	if err != nil {
		return err
	}
	found, err := inspect(ctx, restored, bar)
	if err != nil {
		return err
	}
	if different := differences(g.Objects, found.Objects); different != "" || found.Revision != g.revision {
		return fmt.Errorf("what was restored is not what was saved: revision %d, want %d; %s", found.Revision, g.revision, different)
	}
	return nil
}
