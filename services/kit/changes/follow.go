package changes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
)

const (
	defaultBuffer  = 8 << 20
	defaultSilence = 6 * time.Second
	privateSilence = 30 * time.Second // on a bus of this process
	// channelLength is the number of messages that the NATS client buffers before the inbox.
	channelLength = 1024
	// flushTimeout bounds the wait until NATS has registered a new subscription.
	flushTimeout = 2 * time.Second
	// maxLeap is how many revisions one message may advance a stream without confirmation
	// by a replay. The hub reports progress every second, so its steps are small.
	maxLeap = 1 << 20
	// defaultConfirm is longer than one hub may lag behind another.
	defaultConfirm         = 5 * time.Second
	minBackoff, maxBackoff = 10 * time.Millisecond, time.Second
)

// Source is a source of changes. Its fields must be set before its first use.
type Source struct {
	Bus *nats.Conn
	Hub services.WatchHub
	// Buffer bounds the messages that wait for a follower, in bytes; 0 is 8 MiB.
	Buffer int
	// Silence is how long a follower receives nothing before it requests a replay; 0 is
	// twice the interval at which an idle hub reports its progress: 6 s, and 30 s on a bus of
	// this process.
	Silence time.Duration
	// Opener opens sealed messages; nil creates one for every stream. It is not used with
	// the embedded server of this process, where nothing is sealed.
	Opener *Opener
	// confirm is how long the hub may take to confirm a revision in a message.
	confirm time.Duration
}

// Batch holds the changes since the previous batch.
type Batch struct {
	// Changes are in the order of their revisions; empty if only Through advanced.
	Changes []services.Change
	// Through is the revision up to which the sequence is complete.
	Through int64
	// Epoch is that of the revisions, as in services.Page.
	Epoch string
}

// Stream is the sequence of changes of one resource type. Only Refresh may be
// called by several goroutines at a time.
type Stream struct {
	source Source
	gr     resource.GroupResource
	inbox  *inbox
	stop   context.CancelFunc
	ended  chan struct{} // closed when receiving has stopped

	epoch    string // of the position; empty until the first replay
	position int64  // complete through here
	target   int64  // known to exist
	behind   bool   // a replay is needed before live messages
	// unconfirmedSince is the time of the first replay that did not reach the target.
	unconfirmedSince time.Time
	backlog          []*nats.Msg
}

// Follow starts the sequence after a revision. It ends with ctx or Close.
func (s Source) Follow(ctx context.Context, gr resource.GroupResource, after int64) (*Stream, error) {
	s.Buffer = cmp.Or(s.Buffer, defaultBuffer)
	if s.Silence == 0 {
		s.Silence = defaultSilence
		if bus.Private(s.Bus) {
			s.Silence = privateSilence
		}
	}
	s.confirm = cmp.Or(s.confirm, defaultConfirm)
	if s.Opener == nil {
		s.Opener = NewOpener(s.Hub, nil, slog.New(slog.DiscardHandler))
	}
	ctx, stop := context.WithCancel(ctx)
	stream := &Stream{source: s, gr: gr, inbox: newInbox(s.Buffer), stop: stop,
		ended: make(chan struct{}), position: after, target: after, behind: true}
	if err := stream.subscribe(ctx); err != nil {
		stop()
		return nil, services.Unavailable("following %s: %v", gr, err)
	}
	return stream, nil
}

// Replay requests a replay and retries temporary errors. It returns permanent errors, such
// as Expired (410), and that of ctx.
func (s Source) Replay(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	for pauses := retry.NewBackoff(minBackoff, maxBackoff); ; {
		replay, err := s.Hub.Replay(ctx, r)
		if ctx.Err() != nil {
			return services.Replay{}, ctx.Err()
		}
		if err == nil || permanent(err) {
			return replay, err
		}
		if !pauses.Pause(ctx) {
			return services.Replay{}, ctx.Err()
		}
	}
}

// Close ends the stream.
func (s *Stream) Close() { s.stop() }

// Next waits for the next batch. The error Expired (410) means that the hub no longer has
// the next changes: list again and follow from there. Temporary errors are retried until
// ctx ends.
func (s *Stream) Next(ctx context.Context) (Batch, error) {
	silence := time.NewTimer(s.source.Silence)
	defer silence.Stop()
	for {
		if s.behind {
			batch, err := s.catchUp(ctx)
			if err != nil || batch.Through > 0 {
				return batch, err
			}
		}
		if batch := s.live(); batch.Through > 0 {
			return batch, nil
		}
		if s.behind {
			continue
		}
		select {
		case <-s.inbox.ready:
			silence.Reset(s.source.Silence)
			if !s.inbox.refresh.Swap(false) {
				continue
			}
		case <-silence.C:
			silence.Reset(s.source.Silence)
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
		if batch, err := s.replay(ctx); permanent(err) || batch.Through > 0 {
			return batch, err
		}
	}
}

// Refresh makes Next request a replay at once, instead of waiting for the next progress
// report.
func (s *Stream) Refresh() {
	s.inbox.refresh.Store(true)
	s.inbox.wake()
}

// catchUp replays until there is a new batch or nothing is missing.
func (s *Stream) catchUp(ctx context.Context) (Batch, error) {
	for pauses := retry.NewBackoff(minBackoff, maxBackoff); ; {
		batch, err := s.replay(ctx)
		if ctx.Err() != nil {
			return Batch{}, ctx.Err()
		}
		if permanent(err) || batch.Through > 0 || err == nil && !s.behind {
			return batch, err
		}
		if !pauses.Pause(ctx) {
			return Batch{}, ctx.Err()
		}
	}
}

// replay requests one page of changes after the position. Through is 0 if there is nothing
// new.
func (s *Stream) replay(ctx context.Context) (Batch, error) {
	r, err := s.source.Hub.Replay(ctx, services.ReplayRequest{GroupResource: s.gr, After: s.position})
	if err != nil {
		return Batch{}, err
	}
	if s.epoch == "" {
		s.epoch = r.Epoch
	}
	if r.Epoch != "" && r.Epoch != s.epoch {
		return Batch{}, services.Expired("the store was restored: its history does not continue the one that was followed")
	}
	before := s.position
	batch := Batch{Epoch: s.epoch}
	for _, c := range r.Changes {
		if c.Object.Revision > s.position {
			batch.Changes = append(batch.Changes, c)
			s.position = c.Object.Revision
		}
	}
	s.position = max(s.position, r.Through)
	s.behind = r.More || s.awaitsConfirmation()
	if s.position > before {
		batch.Through = s.position
	}
	return batch, nil
}

// awaitsConfirmation reports whether the stream has to wait for the target. A target that
// the hub does not confirm in time is dropped, so that no message can block the stream. If
// the revision exists after all, a later message names it again.
func (s *Stream) awaitsConfirmation() bool {
	switch now := time.Now(); {
	case s.position >= s.target:
		s.unconfirmedSince = time.Time{}
		return false
	case s.unconfirmedSince.IsZero():
		s.unconfirmedSince = now
		return true
	case now.Sub(s.unconfirmedSince) < s.source.confirm:
		return true
	}
	s.source.Opener.refuse(reasonUnconfirmed, Subject(s.gr))
	s.target, s.unconfirmedSince = s.position, time.Time{}
	return false
}

// live returns the received changes that continue the position without a gap. Through is 0
// if there is nothing new.
func (s *Stream) live() Batch {
	messages, lost := s.inbox.take()
	s.backlog = append(s.backlog, messages...)
	before := s.position
	batch := Batch{Epoch: s.epoch}
	for len(s.backlog) > 0 && !s.behind {
		m := s.backlog[0]
		s.backlog[0] = nil
		s.backlog = s.backlog[1:]
		if m.Subject == SubjectProgress {
			s.progress(m.Data)
		} else {
			batch.Changes = s.changes(batch.Changes, m.Data)
		}
	}
	s.behind = s.behind || lost
	if s.position > before {
		batch.Through = s.position
	}
	return batch
}

// changes appends the changes of a message that continue the position. A gap or an
// unreadable message requires a replay.
func (s *Stream) changes(list []services.Change, message []byte) []services.Change {
	decoded, err := decodeChanges(message)
	if err != nil {
		s.source.Opener.refuse(reasonMalformed, Subject(s.gr))
		s.behind = true
		return list
	}
	for _, c := range decoded {
		if c.Object.Revision <= s.position {
			continue
		}
		if c.Previous > s.position || c.Object.Revision-s.position > maxLeap {
			s.missing(decoded[len(decoded)-1].Object.Revision)
			return list
		}
		list = append(list, c)
		s.position = c.Object.Revision
	}
	return list
}

// progress advances the position if the type has not changed, or detects that a change was
// not received.
func (s *Stream) progress(message []byte) {
	p, err := rpc.DecodeProgress(message)
	if err != nil {
		s.source.Opener.refuse(reasonMalformed, SubjectProgress)
		s.behind = true
		return
	}
	if !p.About(s.gr) {
		return
	}
	if p.Epoch != "" && p.Epoch != s.epoch {
		s.behind = true // the replay returns the current epoch
		return
	}
	// Types that are not in Heads have not changed since the floor.
	head, ok := p.Heads[s.gr]
	if !ok {
		head = p.Floor
	}
	if head > s.position {
		s.missing(head)
		return
	}
	if p.Through-s.position > maxLeap {
		s.missing(p.Through)
		return
	}
	s.position = max(s.position, p.Through)
}

func (s *Stream) missing(through int64) {
	s.behind = true
	s.target = max(s.target, through)
}

// subscribe uses one channel for changes and progress, so that both arrive in the order
// in which the hub published them. In one process, the hub only wakes the follower, which then
// reads the changes without a copy.
func (s *Stream) subscribe(ctx context.Context) error {
	conn := s.source.Bus
	messages := make(chan *nats.Msg, channelLength)
	connected := conn.StatusChanged(nats.CONNECTED)
	var subscriptions []*nats.Subscription
	sleep := bus.OnWake(conn, Subject(s.gr), s.inbox.lose)
	end := func() {
		sleep()
		conn.RemoveStatusListener(connected)
		for _, sub := range subscriptions {
			_ = sub.Unsubscribe() // fails only when the connection is closed
		}
	}
	for _, subject := range []string{Subject(s.gr), SubjectProgress} {
		sub, err := conn.ChanSubscribe(subject, messages)
		if err != nil {
			end()
			return fmt.Errorf("subscribing to %s: %w", subject, err)
		}
		subscriptions = append(subscriptions, sub)
	}
	if conn.IsConnected() {
		// After a failure the connection is restored, which causes a replay.
		_ = conn.FlushTimeout(flushTimeout)
	}
	go func() {
		defer close(s.ended)
		defer end()
		s.receive(ctx, messages, connected)
	}()
	return nil
}

func (s *Stream) receive(ctx context.Context, messages <-chan *nats.Msg, connected <-chan nats.Status) {
	private := bus.Private(s.source.Bus)
	for {
		select {
		case m := <-messages:
			// Forged messages are dropped here, before they use space in the inbox.
			ok, missed := true, false
			if !private {
				ok, missed = s.source.Opener.open(ctx, s.gr, m)
			}
			if ok {
				s.inbox.put(m)
			}
			if missed {
				s.inbox.lose()
			}
		case _, ok := <-connected:
			if !ok {
				connected = nil // the connection is closed permanently
				continue
			}
			s.inbox.lose()
		case <-ctx.Done():
			return
		}
	}
}

// permanent reports whether a retry would return the same error.
func permanent(err error) bool {
	if err == nil {
		return false
	}
	code := services.AsStatus(err).Code
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests
}
