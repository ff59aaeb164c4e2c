package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
)

// FromNow makes [Client.Events] tell only what happens from now on.
const FromNow = -1

// Events follows the record behind entry after, or from now on with [FromNow].
// It yields until ctx ends, which is no error, or the connection breaks, which
// is one: go on from the last event's number.
func (c *Client) Events(ctx context.Context, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		x := exchange{method: http.MethodGet, path: []string{"v1", "events"}}
		if after >= 0 {
			x.query = map[string][]string{"after": {strconv.FormatInt(after, 10)}}
		}
		resp, err := c.send(ctx, x, "text/event-stream")
		if err != nil {
			if ctx.Err() == nil {
				yield(Event{}, err)
			}
			return
		}
		defer resp.Body.Close()
		err = readEvents(resp.Body, func(e Event) bool { return yield(e, nil) })
		if err != nil && ctx.Err() == nil {
			yield(Event{}, err)
		}
	}
}

// maxEvent bounds one line of a stream.
const maxEvent = 1 << 20

// readEvents returns nil when yield wants no more.
func readEvents(r io.Reader, yield func(Event) bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
			continue
		}
		if len(line) > 0 || len(data) == 0 {
			continue // a comment, an id, a name; or a dispatch of nothing
		}
		var e Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("%w: %w", ErrAnswer, err)
		}
		data = data[:0]
		if !yield(e) {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("api: the stream broke: %w", err)
	}
	return fmt.Errorf("api: the stream broke: %w", io.ErrUnexpectedEOF)
}
