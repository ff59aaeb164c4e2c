package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// eventRoute is the stream of the record. Each event is named by its number, so
// a reader that comes back says what it saw last and misses nothing.
func eventRoute() route {
	return route{
		method: http.MethodGet, pattern: "/v1/events", plane: humans, name: "events",
		doc:   "Follows the record as server-sent events, resumable by Last-Event-ID.",
		out:   reflect.TypeFor[api.Event](),
		media: "text/event-stream", query: []param{{"after", "Number of the last entry that was seen. Last-Event-ID wins over it. Absent: from now on."}},
		serve: (*exchange).events,
	}
}

func (x *exchange) events() error {
	first, err := x.firstEvent()
	if err != nil {
		return err
	}
	release, ok := x.web.streams.take(x.human.ID)
	if !ok {
		return newProblem(http.StatusTooManyRequests, api.TooManyStreams, "Too many streams are open already. Close one and come back.")
	}
	defer release()
	x.w.Header().Set("Content-Type", "text/event-stream")
	if x.r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	err = x.stream(ctx, x.web.followed(ctx, first))
	if err != nil && ctx.Err() == nil {
		x.web.log.Debug("a stream of events ended", "who", x.human.ID, "err", err)
	}
	return nil // the answer has begun: its end is all that can be told
}

// firstEvent is the number to begin with.
func (x *exchange) firstEvent() (int64, error) {
	q, err := x.params("after")
	if err != nil {
		return 0, err
	}
	last := q.Get("after")
	if id := x.r.Header.Get("Last-Event-ID"); id != "" {
		last = id
	}
	h, err := x.web.store.Head(x.r.Context())
	if err != nil || last == "" {
		return h.Size, err
	}
	n, err := strconv.ParseInt(last, 10, 64)
	switch {
	case err != nil || n < 0 || strconv.FormatInt(n, 10) != last:
		return 0, badQuery("The last event is named by its number.")
	case n >= h.Size:
		return 0, newProblem(http.StatusConflict, api.Stale, "The record is shorter than what you have seen: it is another one, or was rolled back.")
	}
	return n + 1, nil
}

// line is one line of the record on its way to a reader.
type line struct {
	text []byte
	err  error
}

// followed yields the record from first on until ctx ends.
func (w *Web) followed(ctx context.Context, first int64) <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		for text, err := range w.store.Follow(ctx, first) {
			select {
			case lines <- line{text, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

var errGone = errors.New("the credential is not good any more")

// stream writes events until the reader, the server or the credential ends. A
// person who lost the right to read gets no further event (API-06).
func (x *exchange) stream(ctx context.Context, lines <-chan line) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	if err := x.chunk([]byte(": the record follows\n\n")); err != nil {
		return err
	}
	for {
		var b []byte
		select {
		case <-ctx.Done():
			return nil
		case <-x.web.done:
			return nil
		case <-beat.C:
			b = []byte(":\n\n")
		case l, ok := <-lines:
			if !ok || l.err != nil {
				return l.err
			}
			var err error
			if b, err = x.event(ctx, l.text); err != nil {
				return err
			}
		}
		if !x.stillGood(ctx) {
			return errGone
		}
		if err := x.chunk(b); err != nil {
			return err
		}
	}
}

// chunk writes and flushes within the time for one event: who does not read
// does not hold the server up (MCP-24).
func (x *exchange) chunk(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	x.web.until(x.w, writeTime)
	if _, err := x.w.Write(b); err != nil {
		return err
	}
	return http.NewResponseController(x.w).Flush()
}

// stillGood verifies the credential of the exchange once more.
func (x *exchange) stillGood(ctx context.Context) bool {
	if x.session.ID != "" {
		cookie, _ := x.web.cookieOf(x.r)
		_, err := x.web.creds.Session(ctx, cookie)
		return err == nil
	}
	text, _ := bearer(x.r)
	_, _, err := x.web.creds.Human(ctx, text)
	return err == nil
}

// event makes a server-sent event of a line of the record, or nothing when it is
// not for this reader.
func (x *exchange) event(ctx context.Context, text []byte) ([]byte, error) {
	e, err := ledger.ParseEntry(text)
	if err != nil {
		return nil, err
	}
	if !x.mayHear(e) {
		return nil, nil
	}
	out := api.Event{
		Seq: e.Seq, Time: e.Time, Kind: string(e.Kind), Subject: e.Subject,
		Actor: api.Actor{Kind: string(e.Actor.Kind), ID: e.Actor.ID, Via: e.Actor.Via}, Data: json.RawMessage(e.Data),
	}
	if uuid(e.Subject) {
		r, err := x.web.store.Get(ctx, approval.ID(e.Subject))
		switch {
		case err == nil:
			out.Request = eventRequest(r)
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	var b bytes.Buffer
	b.WriteString("id: " + strconv.FormatInt(e.Seq, 10) + "\nevent: " + string(e.Kind) + "\ndata: ")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, err
	}
	b.WriteByte('\n') // Encode ended the data line; this ends the event
	return b.Bytes(), nil
}

// mayHear reports whether an event concerns a person: all that is about
// requests, tools, policy and pauses does; of sign-ins and credentials only
// their own.
func (x *exchange) mayHear(e ledger.Entry) bool {
	area, _, _ := strings.Cut(string(e.Kind), ".")
	if area != "auth" && area != "key" {
		return true
	}
	holder, _ := e.Text("for")
	return e.Actor.ID == x.human.Subject() || holder == x.human.ID
}
