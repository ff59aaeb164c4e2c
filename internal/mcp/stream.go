package mcp

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Bounds of the log of one stream. A message that must not be lost (a reply, a
// request) is kept beyond them; there are few.
const (
	maxLogEvents = 256
	maxLogBytes  = 1 << 20
)

// stream carries messages to an agent over HTTP, in order: those of one POST, or
// those of the standing GET of a legacy session. It outlives the connection that
// reads it, so that in the legacy era a reader who comes back finds what was
// sent meanwhile. At most one reader is attached; a newer one takes its place.
type stream struct {
	id string // names the stream in event ids; empty when it cannot be resumed

	mu       sync.Mutex
	log      []event // oldest first; those from read on are still to be sent
	bytes    int     // of the messages in log
	next     int     // the index of the next event; 0 is the priming event
	read     int     // the first index that has not been handed to a reader
	owed     int     // replies still to come
	streamed bool    // something else than replies was sent
	status   int     // HTTP status of a lone reply
	closed   error   // set when nothing can reach the agent any more
	reader   *reader
	seen     bool          // there has been a reader
	room     chan struct{} // closed when a waiting sender should look again
}

type event struct {
	index   int
	kind    eventKind
	message []byte
}

type eventKind uint8

const (
	eventNotification eventKind = iota
	eventRequest
	eventReply
)

// reader is a connection that a stream is being written to.
type reader struct {
	wake chan struct{} // holds one token when there may be news
}

func newReader() *reader { return &reader{wake: make(chan struct{}, 1)} }

func (r *reader) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// newStream returns a stream that is over after so many replies.
func newStream(id string, replies int) *stream {
	return &stream{id: id, next: 1, read: 1, owed: replies}
}

// send adds a notification or request. While a reader is attached and behind, it
// waits for it: the write deadline of the connection bounds that wait.
func (s *stream) send(ctx context.Context, kind eventKind, message []byte) error {
	for {
		room, err := s.trySend(kind, message)
		if room == nil {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// trySend returns a channel to wait on when the reader is behind.
func (s *stream) trySend(kind eventKind, message []byte) (room <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed != nil:
		return nil, s.closed
	case s.owed == 0:
		return nil, ErrEnded
	case s.reader != nil && s.behind():
		if s.room == nil {
			s.room = make(chan struct{})
		}
		return s.room, nil
	}
	s.streamed = true
	s.add(kind, message)
	return nil, nil
}

// reply adds the last message of one exchange. [ErrKept] says that the reader has
// left; one that is still to come, right after the request, is not missed.
func (s *stream) reply(message []byte, status int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return s.closed
	}
	s.owed--
	s.status = status
	s.add(eventReply, message)
	if s.reader == nil && s.seen {
		return ErrKept
	}
	return nil
}

func (s *stream) add(kind eventKind, message []byte) {
	s.log = append(s.log, event{s.next, kind, message})
	s.bytes += len(message)
	s.next++
	if s.overfull() {
		s.trim()
	}
	if s.reader != nil {
		s.reader.nudge()
	}
}

func (s *stream) overfull() bool {
	return len(s.log) > maxLogEvents || s.bytes > maxLogBytes
}

// behind reports whether a log's worth of events waits for the reader.
func (s *stream) behind() bool {
	return s.overfull() && s.log[0].index >= s.read
}

// trim drops the oldest events that may be dropped: those a reader has had, and
// notifications for which there is no reader.
func (s *stream) trim() {
	count := len(s.log)
	s.log = slices.DeleteFunc(s.log, func(e event) bool {
		over := count > maxLogEvents || s.bytes > maxLogBytes
		if !over || e.index >= s.read && (s.reader != nil || e.kind != eventNotification) {
			return false
		}
		count--
		s.bytes -= len(e.message)
		return true
	})
}

// attach makes r the reader, from the event after index last on.
func (s *stream) attach(r *reader, last int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != nil {
		s.reader.nudge()
	}
	s.reader, s.seen = r, true
	s.read = last + 1
	r.nudge()
}

// lastTaken returns the index of the last event that a reader has had.
func (s *stream) lastTaken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read - 1
}

// detach ends the reading of r.
func (s *stream) detach(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == r {
		s.reader = nil
		s.makeRoom()
	}
}

// take returns what r has to write, and whether the stream goes on for it.
func (s *stream) take(r *reader) (events []event, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != r {
		return nil, false
	}
	from := slices.IndexFunc(s.log, func(e event) bool { return e.index >= s.read })
	if from >= 0 {
		events = slices.Clone(s.log[from:])
	}
	s.read = s.next
	if s.id == "" {
		s.log, s.bytes = nil, 0
	}
	s.makeRoom()
	return events, s.owed > 0 && s.closed == nil
}

// replies returns the replies once they are all there and were all that was ever
// sent, so that the answer needs no stream. wait says that it may still come to that.
func (s *stream) replies() (events []event, status int, wait bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.streamed || s.closed != nil:
		return nil, 0, false
	case s.owed > 0:
		return nil, 0, true
	}
	return s.log, s.status, false
}

// close says that nothing can reach the agent any more, and why.
func (s *stream) close(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = why
	}
	s.makeRoom()
	if s.reader != nil {
		s.reader.nudge()
	}
}

func (s *stream) makeRoom() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// over reports whether all replies are in.
func (s *stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owed == 0
}

// knows reports whether an agent can have seen the event.
func (s *stream) knows(index int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return index < s.next
}

// everAttached reports whether somebody reads or has read.
func (s *stream) everAttached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// attached reports whether somebody reads.
func (s *stream) attached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reader != nil
}

// size returns the bytes that the log holds.
func (s *stream) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// eventID names an event of a stream so that the agent can resume after it.
func (s *stream) eventID(index int) string {
	if s.id == "" {
		return ""
	}
	return s.id + "-" + strconv.Itoa(index)
}

// cutEventID takes an event id apart.
func cutEventID(id string) (stream string, index int, ok bool) {
	stream, n, ok := strings.Cut(id, "-")
	if !ok || len(n) > 9 {
		return "", 0, false
	}
	index, err := strconv.Atoi(n)
	return stream, index, err == nil && index >= 0
}
