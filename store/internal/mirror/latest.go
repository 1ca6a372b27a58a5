package mirror

import (
	"context"
	"errors"
	"time"

	"github.com/portico-platform/portico/store/internal/contact"
)

// readTimeout bounds one read of etcd's revision.
const readTimeout = 10 * time.Second

// readRevision reads the revision together with the epoch, so that every most-recent
// read detects a restored etcd.
func (m *Mirror) readRevision(ctx context.Context) (int64, error) {
	ctx, cancel := m.contact.Bound(ctx)
	defer cancel()
	e, revision, err := m.keeper.Read(ctx)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), contact.ErrAway):
		return 0, contact.ErrAway
	case err != nil:
		return 0, err
	}
	m.contact.Heard()
	m.enter(e, revision)
	return revision, nil
}
