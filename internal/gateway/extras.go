package gateway

import (
	"crypto/sha256"
	"strings"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// volatile reports whether a member of _meta belongs to one sending of a request
// and not to the request: it differs between a call and its re-issue, so it is no
// part of what people decide about.
func volatile(name string) bool {
	switch name {
	case "progressToken", // where to hear of progress
		"claudecode/toolUseId", "callId", "x-codex-turn-metadata", // which use of the tool by the client
		"traceparent", "tracestate", "baggage", // W3C Trace Context and Baggage
		metaReason: // shown as unchecked
		return true
	}
	return strings.HasPrefix(name, "io.modelcontextprotocol/")
}

// forged reports whether a member of an agent's _meta is one in which only the
// gateway speaks.
func forged(name string) bool { return strings.HasPrefix(name, metaPrefix) && name != metaReason }

// separate reports whether a member of the params of a tools/call is no extra: it
// is the call itself, or an answer to the gateway.
func separate(name string) bool {
	return name == "name" || name == "arguments" || name == "inputResponses" || name == "requestState"
}

// extrasOf returns the extras of a request in canonical form, nil when it has
// none. Of a tools/call they are its params, but for the call itself; of any other
// method _meta alone, because the rest is judged. An error is a fault of what the
// agent sent.
func extrasOf(params []byte, tool bool) ([]byte, error) {
	o := &object{}
	_ = strictjson.Each(params, func(name string, value []byte) error {
		switch {
		case name == "_meta":
			o.add(name, filtered(value, func(name string) bool { return !volatile(name) && !forged(name) }))
		case tool && !separate(name):
			o.add(name, value)
		}
		return nil
	})
	if o.b == nil {
		return nil, nil
	}
	return strictjson.Canonical(nil, o.bytes(), strictjson.Limits{})
}

// filtered is a _meta with only some of its members, nil when none is left. A
// value that is no object is kept whole: it has no member to take out.
func filtered(meta []byte, keep func(name string) bool) []byte {
	if !isObject(meta) {
		return meta
	}
	o := &object{}
	_ = strictjson.Each(meta, func(name string, value []byte) error {
		if keep(name) {
			o.add(name, value)
		}
		return nil
	})
	return o.some()
}

// unforged takes out of an agent's params what only the gateway may say, as a
// claim that was never made. The other bytes stay as they are.
func unforged(params []byte) []byte {
	var names []string
	_ = strictjson.Each(get(params, "_meta"), func(name string, _ []byte) error {
		if forged(name) {
			names = append(names, name)
		}
		return nil
	})
	for _, name := range names {
		params = without(params, "_meta", name)
	}
	return params
}

// as is the action as it goes out for a request that was shown: with the extras of
// the request, whatever the exchange brought that runs it, and of the exchange only
// what belongs to one sending.
func (a *action) as(extra []byte) *action {
	b, o := *a, &object{}
	if a.method == "tools/call" {
		o.add("name", get(a.params, "name")).add("arguments", get(a.params, "arguments"))
	}
	members(extra, func(name string, value []byte) {
		if name != "_meta" {
			o.add(name, value)
		}
	})
	o.add("_meta", resent(get(extra, "_meta"), get(a.params, "_meta")))
	b.extra = extra
	if b.params = o.some(); b.params == nil && a.params != nil {
		b.params = []byte("{}")
	}
	return &b
}

// resent is the _meta that was shown with the volatile members of another.
func resent(shown, sending []byte) []byte {
	if shown != nil && !isObject(shown) {
		return shown
	}
	o := &object{}
	members(shown, func(name string, value []byte) { o.add(name, value) })
	if isObject(sending) {
		members(filtered(sending, volatile), func(name string, value []byte) { o.add(name, value) })
	}
	return o.some()
}

// hash names what the agent asked for: the call, and what goes with it.
func (a *action) hash() call.Hash {
	h := a.call.Hash()
	if a.extra == nil {
		return h
	}
	return sha256.Sum256(append(h[:], a.extra...))
}
