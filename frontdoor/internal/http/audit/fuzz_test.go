package audit

import "testing"

// FuzzID gives audit IDs: what becomes of them is short, can stand in a header and in a
// line of the log, and stays as it is.
func FuzzID(f *testing.F) {
	f.Add("a")
	f.Fuzz(func(t *testing.T, given string) {
		id := ID(given)
		if id == "" || len(id) > longestID {
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
