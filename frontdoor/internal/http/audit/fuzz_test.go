package audit

import "testing"

// FuzzID: the resulting IDs are short, safe in a header and in a log line, and stable
// under ID.
func FuzzID(f *testing.F) {
	f.Add("a")
	f.Fuzz(func(t *testing.T, given string) {
		id := ID(given)
		if id == "" || len(id) > maxIDLength {
			t.Fatalf("%q: %d bytes", id, len(id))
		}
		for _, c := range []byte(id) {
			if c <= ' ' || c > '~' {
				t.Fatalf("%q holds %q", id, c)
			}
		}
		if again := ID(id); again != id {
			t.Errorf("%q becomes %q", id, again)
		}
	})
}
