package gateway

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/mcp"
)

const (
	// metaPrefix begins the members of _meta in which the gateway itself speaks.
	metaPrefix = "dev.ayegate/"
	// metaApproval holds the state of a request: {"id","code","status","reason"}.
	metaApproval = metaPrefix + "approval"
	// codeRefused is the JSON-RPC error of requests other than tools/call that did
	// not run; data holds what a tool result would hold.
	codeRefused = -32000
)

// notReached says that a server is not there, and notOffered that a tool's name
// cannot be used. Neither call was judged.
type notReached struct {
	server string
	err    error
}

func (e *notReached) Error() string {
	return "server " + e.server + " cannot be reached: " + e.err.Error()
}

func (e *notReached) Unwrap() error { return e.err }

type notOffered struct{ name, why string }

// notListed says that a server has no such tool, as a server would say it: there
// is no definition that a person could know, so nobody is asked (POL-07).
type notListed struct{ name string }

func (e *notListed) Error() string {
	return "unknown tool " + strconv.Quote(e.name) + ": the server does not list it, so nothing ran"
}

func (e *notOffered) Error() string { return "the tool " + e.name + " is not passed on: " + e.why }

// refuse tells the agent of an error before or instead of a request.
func (e *exchange) refuse(err error) { e.refuseAs(e.method, err) }

func (e *exchange) refuseAs(name string, err error) {
	var reach *notReached
	var offer *notOffered
	var list *notListed
	switch {
	case errors.As(err, &list):
		e.fail(&mcp.Error{Code: mcp.CodeInvalidParams, Message: list.Error()})
	case errors.As(err, &reach):
		e.say(sentence(api.Unavailable, name, reach.Error(), "later"), nil)
	case errors.As(err, &offer):
		e.say(sentence(api.ToolDenied, name, offer.Error(), "never"), nil)
	default:
		if f := desk.FaultOf(err); f.Code == api.Internal {
			e.g.log.Error("a request could not be handled", "method", e.method, "err", err)
		}
		e.say(desk.TellError(err, name), nil)
	}
}

// sentence is what the desk has no words for: it never heard of the call.
func sentence(code api.Code, name, why, retry string) desk.Words {
	return desk.Words{
		Code: code,
		Text: string(code) + "\n" + name + " did not run: " + why + ".\nNothing ran.",
		JSON: (&object{}).text("code", string(code)).add("ran", []byte("false")).text("retry", retry).bytes(),
	}
}

// say tells the agent what the gateway itself has to say of a call: as the result
// of a tool, which models read and act on, or as the error of any other method.
// It is never a JSON-RPC error for a tool: hosts retry those.
func (e *exchange) say(w desk.Words, r *approval.Request) {
	if e.method != "tools/call" {
		e.fail(&mcp.Error{Code: codeRefused, Message: w.Text, Data: w.JSON})
		return
	}
	e.reply(spoken(w.Text, w.JSON, true, status(w.Code, r)))
}

// spoken is a tool result of our own. There is no structuredContent: clients
// check it against the tool's outputSchema even when it is an error.
func spoken(text string, data []byte, isError bool, meta []byte) []byte {
	content := [][]byte{textBlock(text)}
	if data != nil {
		content = append(content, textBlock(string(data)))
	}
	o := (&object{}).add("content", list(content))
	if isError {
		o.add("isError", []byte("true"))
	}
	return o.add("_meta", (&object{}).add(metaApproval, meta).bytes()).bytes()
}

func textBlock(s string) []byte {
	return (&object{}).text("type", "text").add("text", quoted(s)).bytes()
}

func status(reason api.Code, r *approval.Request) []byte {
	o := &object{}
	if r != nil {
		o.text("id", string(r.ID)).text("code", r.Code).text("status", string(r.State))
	}
	return o.text("reason", string(reason)).bytes()
}

// next says how the agent can go on waiting.
func (e *exchange) next(r *approval.Request) desk.Next {
	return desk.Next{Await: e.ownName(awaitName), URL: e.g.url(r)}
}

// ours takes out of a result what only the gateway may say (MCP-18). The bytes
// stay as they are where there is nothing to take out, which is always but for a
// server that forges. A _meta that two readers could read in two ways goes whole.
func ours(result []byte) []byte {
	meta := get(result, "_meta")
	if meta == nil {
		return result
	}
	rest := without(result, "_meta")
	if has(rest, "_meta") {
		for has(rest, "_meta") {
			rest = without(rest, "_meta")
		}
		return rest
	}
	var forged []string
	if !once(meta, func(name string) {
		if strings.HasPrefix(name, metaPrefix) {
			forged = append(forged, name)
		}
	}) {
		return rest
	}
	for _, name := range forged {
		result = without(result, "_meta", name)
	}
	return result
}

// effectError says what is known of a call that brought no response.
func effectError(err error, before bool) error {
	var lost *mcp.CallError
	switch {
	case errors.As(err, &lost) && !lost.Sent && !before:
		return fmt.Errorf("%w: %w", desk.ErrNotSent, lost.Err)
	case errors.Is(err, mcp.ErrCallLimit), errors.Is(err, mcp.ErrCancelled):
		return fmt.Errorf("%w: %w", desk.ErrNoAnswer, err)
	case errors.Is(err, mcp.ErrTooLarge):
		return fmt.Errorf("%w: %w", desk.ErrTooLarge, err)
	}
	return err
}

// errorObject is a JSON-RPC error of our own in the place of a server's.
func errorObject(code int, message string) []byte {
	return (&object{}).add("code", strconv.AppendInt(nil, int64(code), 10)).text("message", message).bytes()
}
