package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"

	"github.com/portico-platform/portico/internal/progress"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/resource"
)

// revisionBytes is the length of a revision in etcd's database; deletions have one more.
const revisionBytes = 17

// inspect reads etcd's database in a file: a snapshot, or that of a member that does not
// run. It checks the structure of the file. The bar counts the bytes of its keys and values.
func inspect(ctx context.Context, path string, bar *progress.Bar) (c contents, err error) {
	defer func() {
		if p := recover(); p != nil { // bolt and etcd trust their files
			err = fmt.Errorf("%s is not a database of etcd: %v", path, p)
		}
	}()
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return contents{}, fmt.Errorf("%s: %w", path, err)
	}
	tx, err := db.Begin(false)
	if err != nil {
		return contents{}, errors.Join(err, db.Close())
	}
	if err = check(ctx, tx); err == nil {
		c, err = read(ctx, tx, bar)
	} else if ctx.Err() != nil {
		return contents{}, err // bolt still reads the file, which has to stay mapped until the process ends
	} else {
		err = fmt.Errorf("%s is damaged: %w", path, err)
	}
	return c, errors.Join(err, tx.Rollback(), db.Close())
}

// check checks the structure of a database. Unless ctx ends, bolt has read it to its end when it returns.
func check(ctx context.Context, tx *bolt.Tx) (first error) {
	found := tx.Check()
	for {
		select {
		case broken, more := <-found:
			if !more {
				return first
			}
			first = cmp.Or(first, broken)
		case <-ctx.Done():
			return interrupted(ctx)
		}
	}
}

func read(ctx context.Context, tx *bolt.Tx, bar *progress.Bar) (contents, error) {
	keys, meta := tx.Bucket(schema.Key.Name()), tx.Bucket(schema.Meta.Name())
	if keys == nil || meta == nil {
		return contents{}, errors.New("not a database of etcd: it has no keys")
	}
	c := contents{Objects: map[string]int{}}
	present := map[string]bool{}
	cursor := keys.Cursor()
	for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
		bar.Add(int64(len(key) + len(value)))
		if err := interrupted(ctx); err != nil {
			return contents{}, err
		}
		if len(key) < revisionBytes {
			return contents{}, fmt.Errorf("a key of etcd's database is no revision: %x", key)
		}
		c.written = mvcc.BytesToRev(key[:revisionBytes]).Main
		var kv mvccpb.KeyValue
		if err := proto.Unmarshal(value, &kv); err != nil {
			return contents{}, fmt.Errorf("revision %d: %w", c.written, err)
		}
		if string(kv.Key) == etcd.RecordKey {
			c.record = kv.Value // a deletion has none
		}
		if mvcc.IsTombstone(key) {
			delete(present, string(kv.Key))
		} else if bytes.HasPrefix(kv.Key, []byte(resource.Root)) {
			present[string(kv.Key)] = true
		}
	}
	for path := range present {
		key, err := resource.ParsePath(path)
		if err != nil {
			return contents{}, err
		}
		c.Objects[key.GroupResource.String()]++
	}
	c.Revision = c.written
	for _, name := range [][]byte{schema.ScheduledCompactKeyName, schema.FinishedCompactKeyName} {
		if value := meta.Get(name); len(value) >= revisionBytes {
			c.Revision = max(c.Revision, mvcc.BytesToRev(value[:revisionBytes]).Main)
		}
	}
	return c, nil
}

// differences returns how the objects of two databases differ; empty when they do not.
func differences(was, is map[string]int) string {
	var found []string
	all := maps.Clone(was)
	if all == nil {
		all = map[string]int{}
	}
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if was[name] != is[name] {
			found = append(found, fmt.Sprintf("%s: %d and not %d", name, is[name], was[name]))
		}
	}
	return strings.Join(found, ", ")
}

// exists reports whether there is something at a path; for a folder, something in it.
func exists(path string) (bool, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return len(entries) > 0, err
}
