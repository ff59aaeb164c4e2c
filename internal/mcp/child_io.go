package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// maxStderrLine bounds a line of a server's standard error.
const maxStderrLine = 8 << 10

// startChild runs the command and everything that serves the process.
func startChild(ctx context.Context, t Target) (*Child, error) {
	p, err := t.Command.start()
	if err != nil {
		return nil, err
	}
	c := &Child{
		lifetime: newLifetime(ctx), t: t, proc: p, stray: newInbox(),
		writes: make(chan *outbound), exited: make(chan struct{}), drained: make(chan struct{}),
		calls: make(map[uint64]*childCall), running: make(map[*childCall]struct{}),
	}
	t.Log.Info("server started", "path", p.path, "pid", p.cmd.Process.Pid)
	logged := make(chan struct{})
	c.spawn(c.write)
	c.spawn(c.read)
	c.spawn(func() { c.reap(logged) })
	c.spawn(func() { c.stray.follow(c.lifetime, orNobody(t.Stray)) })
	c.spawn(func() {
		defer close(logged)
		w := &logWriter{w: t.Command.Stderr, max: maxStderrLine}
		_, _ = io.Copy(w, p.stderr)
		w.flush()
	})
	context.AfterFunc(c.ctx, func() { closeAll(p.stdin) })
	return c, nil
}

// reap waits for the process, ends what it left running, and then the connection.
func (c *Child) reap(logged <-chan struct{}) {
	err := c.proc.cmd.Wait()
	killGroup(c.proc.cmd.Process)
	close(c.exited)
	// A descendant that left the group may hold the pipes open for ever.
	late := time.AfterFunc(c.t.Grace, func() { closeAll(c.proc.stdout, c.proc.stderr) })
	<-c.drained
	<-logged
	late.Stop()
	closeAll(c.proc.stdout, c.proc.stderr)
	if err == nil {
		err = errors.New("exit status 0")
	}
	c.finish(fmt.Errorf("the server's process ended: %w", err))
}

// write is the only writer of the process's input.
func (c *Child) write() {
	for {
		select {
		case <-c.Done():
			return
		case out := <-c.writes:
			n, err := c.proc.stdin.Write(out.line)
			if err == nil {
				continue
			}
			out.lost.Store(n == 0)
			// A process that dies stops reading first. What it still said is read
			// before the connection ends.
			timer := time.NewTimer(c.t.Grace)
			defer timer.Stop()
			select {
			case <-c.Done():
			case <-timer.C:
				c.finish(fmt.Errorf("the server takes no input: %w", err))
			}
			return
		}
	}
}

// read is the only reader of the process's output.
func (c *Child) read() {
	defer close(c.drained)
	r := bufio.NewReaderSize(c.proc.stdout, 32<<10)
	for {
		line, whole, err := readLine(r, c.t.MaxMessage)
		switch {
		case !whole:
			c.blame(line, ErrTooLarge)
		case len(line) > 0:
			c.take(line)
		}
		if err != nil {
			return
		}
	}
}

// readLine returns the next line without its end, in memory of its own. Of a
// line longer than max it returns both ends and not whole; [Lines] would skip
// it, and nobody would know which call it was the answer to.
func readLine(r *bufio.Reader, max int) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := r.ReadSlice('\n')
		if whole && len(line)+len(trimEnd(part)) > max {
			whole = false
		}
		line = append(line, part...)
		if !whole && len(line) > 2*keptEnd {
			line = append(line[:keptEnd:keptEnd], line[len(line)-keptEnd:]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), whole, err
		}
	}
}

// blame ends the call whose answer cannot be used, so that it need not wait for
// its time limit. An answer that names no call is only logged.
func (c *Child) blame(line []byte, problem error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.t.Log.Warn("unusable message from server", "problem", problem, "bytes", len(line))
	if id, ok := answered(line); ok && c.calls[id] != nil {
		c.calls[id].failed <- problem
		delete(c.calls, id)
	}
}

// take reads one line. Programs print all sorts of things to their standard
// output; what is no message is logged and otherwise ignored.
func (c *Child) take(line []byte) {
	if line[0] == '[' && c.About().Version <= V20250326 {
		lim := strictjson.Limits{Bytes: c.t.MaxMessage, Depth: maxResultDepth, Lax: true}
		_ = strictjson.Elements(line, lim, func(_ int, value []byte) error {
			c.one(value)
			return nil
		})
		return
	}
	c.one(line)
}

func (c *Child) one(raw []byte) {
	m, err := parseServers(raw, c.t.MaxMessage)
	if err != nil {
		c.blame(raw, fmt.Errorf("%w: %w", ErrUnreadable, err))
		return
	}
	switch m.Kind() {
	case Response:
		c.response(m)
	case Notification:
		c.notification(m)
	case Request:
		c.request(m)
	case NoMessage: // the parser refuses it
	}
}

// response ends a call. The first response wins; what answers no call in flight
// is ignored (MCP-17).
func (c *Child) response(m Message) {
	c.lock.Lock()
	defer c.lock.Unlock()
	id, ok := number(m.ID)
	if !ok || c.calls[id] == nil {
		c.t.Log.Warn("response to no call in flight", "id", string(m.ID))
		return
	}
	c.calls[id].answer <- m
	delete(c.calls, id)
}

func (c *Child) notification(m Message) {
	switch {
	case m.Method == methodCancelled:
		c.asking.withdraw(cancelledID(m.Params))
	case m.Method == methodProgress:
		c.progress(m)
	case c.terms.Load() == nil: // some servers announce changes before they have said hello
		c.t.Log.Debug("notification before initialization", "method", m.Method)
	default:
		to := c.stray
		if id, ok := number(Meta(m.Params, MetaSubscription)); ok {
			if call := c.find(id); call != nil {
				to = call.news
			}
		}
		if !to.put(m) {
			c.t.Log.Warn("notification dropped: too many are waiting", "method", m.Method)
		}
	}
}

// progress goes to the call it is about, with the token that the agent chose.
func (c *Child) progress(m Message) {
	token, _ := progressToken(m)
	call := c.find(token)
	if call == nil || call.token == nil {
		c.t.Log.Debug("progress of no call in flight")
		return
	}
	if m, ok := restored(m, call.token); ok {
		call.news.put(m)
	}
}

func (c *Child) find(id uint64) *childCall {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.calls[id]
}

// request answers a request of the server. Answering waits for people and must
// not hold up the reader.
func (c *Child) request(m Message) {
	ctx, to, done := c.askee(m.Method)
	ok := c.reply(func() {
		raw := c.asking.answer(ctx, m, to)
		done() // the call need not wait until its server takes the answer
		if raw != nil {
			_ = c.send(c.ctx, &outbound{line: AppendLine(nil, raw)})
		}
	})
	if !ok {
		done()
		c.t.Log.Warn("request of the server dropped: too many at a time", "method", m.Method)
	}
}

// askee finds who is to answer a request of the server. A question about roots
// concerns the session; any other is asked because of a call, and which one can
// only be told when there is one.
func (c *Child) askee(method string) (ctx context.Context, to Answers, done func()) {
	c.lock.Lock()
	defer c.lock.Unlock()
	agreed := c.terms.Load()
	switch {
	case method == methodPing:
		return c.ctx, alive{}, func() {}
	case agreed == nil || agreed.meta != nil:
		return c.ctx, nobody{}, func() {}
	case len(c.running) == 0 || method == methodRoots:
		return c.ctx, orNobody(c.t.Stray), func() {}
	}
	c.serial = true
	if len(c.running) > 1 {
		return c.ctx, nobody{}, func() {}
	}
	for call := range c.running {
		call.asks.Add(1)
		ctx, to, done = call.ctx, call.to, call.asks.Done
	}
	return ctx, to, done
}

// alive answers a ping.
type alive struct{ nobody }

func (alive) Ask(context.Context, Message) ([]byte, *Error) { return []byte(`{}`), nil }
