package mcp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// Bounds of a connection over stdio.
const (
	maxStdioMessage  = 1 << 20 // bytes of one message of an agent
	maxStdioInflight = 64      // requests served at a time
	maxStdioQueue    = 64      // messages that wait to be written
)

// ServeStdio serves one agent that speaks newline-delimited JSON over in and out,
// in both eras, until in ends, out fails or ctx ends; the end of in is no error.
// c holds what is known of the agent beforehand: principal, session, server.
//
// Nothing is asked of s before the agent's first message that is well-formed:
// some agents start a server only to see whether it starts. At the end requests
// that are still being served are cancelled with [ErrDisconnected] and waited for;
// s must let go of them. in is not closed: when ctx ends first, one read of it may
// stay behind until the caller closes it.
func ServeStdio(ctx context.Context, in io.Reader, out io.Writer, s Server, c Client) error {
	c.Transport = "stdio"
	t := &stdio{server: s, client: c, out: make(chan []byte, maxStdioQueue), gone: make(chan struct{})}
	t.ctx, t.stop = context.WithCancelCause(ctx)
	var writer sync.WaitGroup
	writer.Go(func() { t.write(out) })
	err := t.read(in)
	t.stop(ErrDisconnected)
	t.asks.close()
	t.running.Wait()
	if t.used {
		s.Close(t.client)
	}
	close(t.gone)
	writer.Wait()
	return errors.Join(err, t.failed, t.bugs)
}

// stdio is one agent over stdio.
type stdio struct {
	server   Server
	client   Client // of the legacy session, once there is one
	ctx      context.Context
	stop     context.CancelCauseFunc
	inflight inflight
	asks     asks
	running  sync.WaitGroup

	out    chan []byte   // lines to write
	gone   chan struct{} // closed when no more lines come
	failed error         // of the writer, to be read when it has ended

	mu   sync.Mutex
	bugs error // panics of the server, see report

	used        bool // something of the agent has reached the server
	initialized bool
}

// report keeps the first panic.
func (t *stdio) report(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bugs == nil {
		t.bugs = err
	}
}

// write is the only writer of out. It flushes whenever nothing more waits.
func (t *stdio) write(out io.Writer) {
	w := bufio.NewWriter(out)
	for {
		select {
		case line := <-t.out:
			t.writeLine(w, line)
		case <-t.gone:
			for {
				select {
				case line := <-t.out:
					t.writeLine(w, line)
				default:
					return
				}
			}
		}
	}
}

func (t *stdio) writeLine(w *bufio.Writer, line []byte) {
	if t.failed != nil {
		return
	}
	_, err := w.Write(line)
	if err == nil && len(t.out) == 0 {
		err = w.Flush()
	}
	if err != nil {
		t.failed = err
		t.stop(ErrDisconnected)
	}
}

// line is what the reading goroutine found.
type line struct {
	bytes []byte
	err   error
}

// read handles what the agent sends, one message after the other.
func (t *stdio) read(in io.Reader) error {
	lines := make(chan line)
	go func() {
		r := NewLines(in, maxStdioMessage)
		for {
			var l line
			l.bytes, l.err = r.Next()
			select {
			case lines <- l:
			case <-t.ctx.Done():
				return
			}
			if l.err != nil && !errors.Is(l.err, ErrLineTooLong) {
				return
			}
		}
	}()
	for {
		select {
		case l := <-lines:
			switch {
			case l.err == nil:
				t.message(l.bytes)
			case errors.Is(l.err, io.EOF):
				return nil
			case errors.Is(l.err, ErrLineTooLong):
				t.put(NewError(nil, &Error{Code: CodeInvalidRequest, Message: nothingRan("the message is longer than " + strconv.Itoa(maxStdioMessage) + " bytes")}))
			default:
				return l.err
			}
		case <-t.ctx.Done():
			return nil
		}
	}
}

// message handles one line.
func (t *stdio) message(raw []byte) {
	m, err := parseAgent(raw, strictjson.Limits{Bytes: maxStdioMessage}, true)
	if err != nil {
		t.put(NewError(m.ID, refusal(err)))
		return
	}
	switch m.Kind() {
	case Response:
		t.asks.answer(m)
	case Notification:
		t.notification(m)
	default:
		t.request(m)
	}
}

func (t *stdio) notification(m Message) {
	if m.Method == methodCancelled {
		if id := cancelledID(m.Params); id != nil {
			t.inflight.cancel(IDKey(id))
		}
		return
	}
	t.used = true
	t.server.Notification(t.ctx, t.client, m)
}

// request starts an exchange, unless the request is refused here.
func (t *stdio) request(m Message) {
	c, e := t.asker(m)
	switch {
	case e != nil:
		t.put(NewError(m.ID, e))
		return
	case m.Method == "initialize" && c.Version.Era() == Legacy:
		t.initialize(m)
		return
	}
	if t.inflight.len() >= maxStdioInflight {
		t.put(NewError(m.ID, &Error{Code: CodeInternal, Message: nothingRan("too many requests at a time")}))
		return
	}
	ctx, cancel := context.WithCancelCause(t.ctx)
	key := IDKey(m.ID)
	if !t.inflight.begin(key, cancel) {
		cancel(nil)
		t.put(NewError(m.ID, invalid("/id", "is the id of a request that is still being served")))
		return
	}
	x := &exchange{client: c, request: m, out: &stdioOutlet{t, ctx}, done: func() { t.inflight.end(key) }}
	if c.Version.Era() == Legacy {
		x.asks = &t.asks
	}
	t.used = true
	t.running.Go(func() {
		defer cancel(nil)
		x.serve(ctx, t.server, t.report)
	})
}

// asker tells who a request comes from: a modern one says so itself, any other is
// one of the session's.
func (t *stdio) asker(m Message) (Client, *Error) {
	c := t.client
	stated, ok := metaText(m.Params, MetaVersion)
	if !ok || Version(stated).Era() == Legacy {
		if e := notInEra(m.Method, Legacy); e != nil {
			return c, e
		}
		if !t.initialized && m.Method != "initialize" && m.Method != "ping" {
			return c, invalid("", "the session has not been initialized, and the request states no protocol revision in _meta")
		}
		return c, nil
	}
	own, e := modernClient(m)
	if e != nil {
		return c, e
	}
	if !own.Version.Supported() {
		return c, unsupported(own.Version)
	}
	c.Version, c.Info, c.Capabilities = own.Version, own.Info, own.Capabilities
	return c, notInEra(m.Method, Modern)
}

func (t *stdio) initialize(m Message) {
	if t.initialized {
		t.put(NewError(m.ID, invalid("", "this session is already initialized")))
		return
	}
	c, e := initializing(t.client, m.Params)
	if e != nil {
		t.put(NewError(m.ID, e))
		return
	}
	t.used = true
	result, e := t.server.Initialize(t.ctx, c, m.Params, t)
	if e != nil {
		t.put(NewError(m.ID, e))
		return
	}
	t.client, t.initialized = c, true
	t.put(NewResult(m.ID, result))
}

// Notify sends a notification outside of any exchange.
func (t *stdio) Notify(ctx context.Context, method string, params []byte) error {
	return t.send(ctx, eventNotification, NewNotification(method, params))
}

// Ask sends a request outside of any exchange.
func (t *stdio) Ask(ctx context.Context, method string, params []byte) (Message, error) {
	return t.asks.ask(ctx, method, params, t.send)
}

// send queues a message. What does not fit at once waits as long as ctx allows.
func (t *stdio) send(ctx context.Context, _ eventKind, message []byte) error {
	if t.ctx.Err() != nil {
		return ErrDisconnected
	}
	text := AppendLine(nil, message)
	select {
	case t.out <- text:
		return nil
	default:
	}
	select {
	case t.out <- text:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.ctx.Done():
		return ErrDisconnected
	}
}

// put queues an answer. It waits for the agent to read, as a server over stdio
// has always done.
func (t *stdio) put(message []byte) {
	_ = t.send(t.ctx, eventReply, message)
}

// stdioOutlet is where one exchange goes.
type stdioOutlet struct {
	t   *stdio
	ctx context.Context // of the exchange
}

func (o *stdioOutlet) send(ctx context.Context, kind eventKind, message []byte) error {
	if o.ctx.Err() != nil {
		return context.Cause(o.ctx)
	}
	return o.t.send(ctx, kind, message)
}

// reply sends the response. Who has cancelled a request gets none.
func (o *stdioOutlet) reply(message []byte, _ int) error {
	if o.ctx.Err() != nil {
		return context.Cause(o.ctx)
	}
	return o.t.send(o.ctx, eventReply, message)
}
