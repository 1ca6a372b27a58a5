package services

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/services/resource"
)

// What is stored and cannot be read is not absent: a value in etcd that cannot be decrypted, is damaged, or was
// written by a later release. Reads of such an object, and lists that include it, return Unreadable. Who decides by
// objects of its type must not decide as if it did not exist.

const (
	// ReasonUnreadable is the reason of a read of an object whose stored value cannot be read.
	ReasonUnreadable = "StorageReadError"
	// CauseStoredRevision is the cause of Unreadable whose message is the revision of the stored value, with
	// which the object can be replaced or deleted.
	CauseStoredRevision = "StoredResourceVersion"
	// VerbUnsafeDelete is the verb on an object that a user needs, besides the ordinary one, to delete or replace
	// it while it cannot be read: neither its finalizers nor admission count then.
	VerbUnsafeDelete = "unsafe-delete-ignore-read-errors"
)

// Unreadable returns the 500 of a read of an object, or of a list that includes it, whose value in etcd cannot be
// read. It names the object.
func Unreadable(key resource.Key, revision int64, why string) *Status {
	return &Status{Code: http.StatusInternalServerError, Reason: ReasonUnreadable,
		Message: fmt.Sprintf("Internal error occurred: %s: %s (stored at revision %d)", key, why, revision),
		Details: &StatusDetails{Name: key.Name, Group: key.Group, Kind: key.Resource,
			Causes: []StatusCause{{Reason: CauseStoredRevision, Message: strconv.FormatInt(revision, 10), Field: "metadata.resourceVersion"}}}}
}

// Err returns Unreadable for an object that a list with ListRequest.WithUnreadable has returned as such, else nil.
func (o *Object) Err() error {
	if o.Unreadable == "" {
		return nil
	}
	return Unreadable(o.Key, o.Revision, o.Unreadable)
}

// UnreadableRevision returns the revision of the stored value that an error is about; false if the error is not
// Unreadable.
func UnreadableRevision(err error) (int64, bool) {
	var s *Status
	if !errors.As(err, &s) || s.Reason != ReasonUnreadable || s.Details == nil {
		return 0, false
	}
	for _, c := range s.Details.Causes {
		if revision, err := strconv.ParseInt(c.Message, 10, 64); c.Reason == CauseStoredRevision && err == nil {
			return revision, true
		}
	}
	return 0, false
}

// NamedUnreadable is how many objects NameUnreadable names.
const NamedUnreadable = 20

// NameUnreadable returns an error that names the objects of a page of ListRequest.WithUnreadable that cannot be read;
// nil if there are none.
func NameUnreadable(p Page) error {
	var text strings.Builder
	count := 0
	for i := range p.Objects {
		if o := &p.Objects[i]; o.Unreadable != "" {
			if count++; count <= NamedUnreadable {
				fmt.Fprintf(&text, "; %s: %.200s", o.Key, o.Unreadable)
			}
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("%d stored objects cannot be read%s", int64(count)+max(0, p.Remaining), text.String())
}
