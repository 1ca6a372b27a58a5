package history

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// sealed returns values by a configuration with keys of one character each.
func sealed(t *testing.T, names ...string) *atrest.Values {
	t.Helper()
	var keys []string
	for _, name := range names {
		keys = append(keys, "{name: "+name+", secret: "+base64.StdEncoding.EncodeToString([]byte(strings.Repeat(name, 32)))+"}")
	}
	return testbed.Encrypted(t, "{aesgcm: {keys: ["+strings.Join(keys, ", ")+"]}}")
}

func TestEncryptedHistory(t *testing.T) { onBoth(t, testEncryptedHistory) }

// testEncryptedHistory: an object is written plain, with one key, with another one, and
// deleted. With both keys every change is read; with one of them, what follows the last change that
// it cannot decrypt: the history of the type begins there.
func testEncryptedHistory(t *testing.T, etcd *testbed.Etcd) {
	write := func(key resource.Key, value string, values *atrest.Values) int64 {
		t.Helper()
		sealed, err := values.Seal(key.Path(), testbed.Record(key, value))
		if err != nil {
			t.Fatal(err)
		}
		put, err := etcd.Put(t.Context(), key.Path(), string(sealed))
		if err != nil {
			t.Fatal(err)
		}
		return put.Header.Revision
	}
	etcd.Write(pod("a"), "plain")
	write(pod("a"), "first", sealed(t, "a"))
	write(pod("a"), "second", sealed(t, "b"))
	last := etcd.Remove(pod("a"))
	read := func(values *atrest.Values) string {
		t.Helper()
		reader := NewReader(etcd.Client, values, slog.New(slog.DiscardHandler))
		all, err := reader.Between(t.Context(), Query{Through: last, Limit: 10, Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		query := Query{GroupResource: pods, Through: last, Limit: 10, Bytes: 1 << 20}
		past, err := reader.Past(t.Context(), query)
		for compacted := (Compacted{}); errors.As(err, &compacted) && compacted.Through > query.After; {
			query.After = compacted.Through
			past, err = reader.Past(t.Context(), query)
		}
		if len(all.Changes) != len(past.Changes) || len(all.Lost) > 0 && all.Lost[len(all.Lost)-1] != (Lost{pods, query.After}) {
			t.Errorf("all types: %+v, lost %v; one type after %d: %+v", all.Changes, all.Lost, query.After, past.Changes)
		}
		if err != nil || past.Through != last {
			t.Fatalf("read through %d: %v", past.Through, err)
		}
		var seen []string
		for _, c := range past.Changes {
			if c.Type == services.Deleted && (c.Object.Key != pod("a") || c.Object.Revision != last) {
				t.Errorf("deleted: %+v", c.Object)
			}
			seen = append(seen, c.Type.String()+" "+c.OldLabels["value"]+" "+c.Object.Labels["value"])
		}
		return strings.Join(seen, ", ")
	}
	for want, values := range map[string]*atrest.Values{
		"ADDED  plain, MODIFIED plain first, MODIFIED first second, DELETED second second": sealed(t, "b", "a"),
		"MODIFIED  second, DELETED second second":                                          sealed(t, "b"),
		"DELETED  ": sealed(t, "a"),
	} {
		if got := read(values); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
