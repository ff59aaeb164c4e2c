package gateway

import (
	"bytes"
	"errors"
	"strings"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// metaClaim carries the claim's id to servers that are to have it.
const metaClaim = "dev.ayegate/claim"

// action is a request that a policy judges, and how it goes to its server.
type action struct {
	server string
	method string // as it goes to the server
	call   call.Call
	// params as they go out, with the names the server knows, but without the
	// judged part: for tools/call the arguments are put in, for any other method
	// all but _meta is replaced.
	params []byte
	// extra is what goes to the server beside the call, in canonical form; nil when
	// nothing does.
	extra []byte
	// answers and state are what a modern agent brings back: its inputResponses and
	// the requestState that we gave it.
	answers, state []byte
	// distinct is the client's own id of this use of the tool, reason what the agent
	// says of it.
	distinct, reason string
}

// The names under which clients tell their uses of tools apart.
var useIDs = []string{"claudecode/toolUseId", "callId"}

// metaReason is where an agent may say why it calls, shown as unchecked.
const metaReason = "dev.ayegate/reason"

const (
	maxReason = 2000
	maxUseID  = 256
)

func newToolAction(server, tool string, e *exchange) (*action, error) {
	args := get(e.params, "arguments")
	if string(args) == "null" { // how some clients spell no arguments
		args = nil
	}
	c, err := call.New(server, tool, args)
	if err != nil {
		return nil, err
	}
	a := &action{server: server, method: "tools/call", call: c, params: unforged(e.params)}
	if e.client.Server == "" {
		a.params = set(a.params, quoted(tool), "name")
	}
	a.takeReturn(e)
	a.label()
	a.extra, err = extrasOf(a.params, true)
	return a, err
}

func newMethodAction(server, method string, params []byte, e *exchange) (*action, error) {
	a := &action{server: server, method: method, params: unforged(params)}
	a.takeReturn(e)
	judged := without(a.params, "_meta")
	c, err := call.New(server, methodPrefix+method, judged)
	if err != nil {
		return nil, err
	}
	a.call = c
	a.label()
	a.extra, err = extrasOf(a.params, false)
	return a, err
}

// takeReturn takes out what a modern agent says to us and not to the server. An
// older agent has nothing to say there, and what it writes goes nowhere: a modern
// server would take it for answers that it never asked for.
func (a *action) takeReturn(e *exchange) {
	answers, state := get(a.params, "inputResponses"), get(a.params, "requestState")
	if answers != nil || state != nil {
		a.params = without(without(a.params, "inputResponses"), "requestState")
	}
	if !e.modern() {
		return
	}
	a.answers, a.state = answers, state
	// A server that could answer with a task would go on after the call has ended.
	a.params = without(a.params, "_meta", mcp.MetaCapabilities, "extensions", tasksExtension)
}

func (a *action) label() {
	for _, name := range useIDs {
		if id := textAt(a.params, "_meta", name); id != "" && len(id) <= maxUseID {
			a.distinct = id
			break
		}
	}
	if a.reason = textAt(a.params, "_meta", metaReason); len(a.reason) > maxReason {
		a.reason = strings.ToValidUTF8(a.reason[:maxReason], "")
	}
}

// again is the action of a request that was made before, for an agent that asks
// by its id: with the extras of the request, and of meta, the asker's own, only
// what belongs to one sending.
func again(r *approval.Request, meta []byte) *action {
	a := &action{server: r.Call.Server(), call: r.Call, params: []byte("{}")}
	if method, ok := strings.CutPrefix(r.Call.Tool(), methodPrefix); ok {
		a.method = method
	} else {
		a.method = "tools/call"
		a.params = (&object{}).text("name", r.Call.Tool()).add("arguments", r.Call.Args()).bytes()
	}
	if meta != nil {
		a.params = set(a.params, meta, "_meta")
	}
	return a.as(r.Extra)
}

var errOtherTool = errors.New("the approved call is for another tool than the one that was asked for")

// outgoing returns the params as they go to the server, for the call that was
// approved: a person may have changed its arguments since the agent asked.
func (a *action) outgoing(c call.Call, claim string, idempotency bool) ([]byte, error) {
	if c.Server() != a.call.Server() || c.Tool() != a.call.Tool() {
		return nil, errOtherTool
	}
	args, params := c.Args(), a.params
	var err error
	if a.method == "tools/call" {
		if has(params, "arguments") || !bytes.Equal(args, []byte("{}")) {
			params, err = strictjson.Splice(params, args, "arguments")
		}
	} else {
		meta := get(params, "_meta")
		if params = args; meta != nil {
			params, err = strictjson.Splice(args, meta, "_meta")
		} else if a.params == nil && bytes.Equal(args, []byte("{}")) {
			params = nil
		}
	}
	if err != nil || !idempotency {
		return params, err
	}
	if params == nil {
		params = []byte("{}")
	}
	return strictjson.Splice(params, quoted(claim), "_meta", metaClaim)
}
