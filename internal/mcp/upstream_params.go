package mcp

import (
	"bytes"
	"regexp"
	"strconv"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// eraMembers are the members of _meta with which a modern request states its
// revision, its client and what the client can do. A legacy server must not see
// them: one that knows both eras would take the request for a modern one.
var eraMembers = []string{MetaVersion, MetaClientInfo, MetaCapabilities}

// introduction is what every request to a modern server says in _meta.
type introduction struct {
	revision Version

	version, info, capabilities []byte // JSON
	meta                        []byte // the three as one object
}

func newIntroduction(v Version, t Target) *introduction {
	in := &introduction{
		revision:     v,
		version:      strictjson.AppendString(nil, string(v)),
		info:         t.Info,
		capabilities: t.Capabilities,
	}
	in.meta = append(in.meta, '{')
	for i, value := range [][]byte{in.version, in.info, in.capabilities} {
		if i > 0 {
			in.meta = append(in.meta, ',')
		}
		in.meta = strictjson.AppendString(in.meta, eraMembers[i])
		in.meta = append(in.meta, ':')
		in.meta = append(in.meta, value...)
	}
	in.meta = append(in.meta, '}')
	return in
}

// outgoing returns params as they go to a server and the progress token that the
// agent chose, nil when it chose none. The server sees token in its place, which
// is unique on this connection: agents do not know of each other and choose
// alike. Beyond that only the era's members of _meta change; a nil introduction
// stands for the legacy era.
func outgoing(params []byte, in *introduction, token uint64) (out, agents []byte, err error) {
	if params == nil {
		if in == nil {
			return nil, nil, nil
		}
		params = []byte(`{}`)
	}
	meta, ok := get(params, "_meta")
	if !ok {
		if in == nil {
			return params, nil, nil
		}
		out, err = strictjson.Splice(params, in.meta, "_meta")
		return out, nil, err
	}
	before := meta
	if agents, ok = strictjson.Get(meta, "progressToken"); ok && canBeToken(agents) {
		if meta, err = strictjson.Splice(meta, strconv.AppendUint(nil, token, 10), "progressToken"); err != nil {
			return nil, nil, err
		}
	} else {
		agents = nil
	}
	if in == nil {
		meta, err = withoutEra(meta)
	} else {
		meta, err = in.into(meta)
	}
	if err != nil || bytes.Equal(meta, before) {
		return params, agents, err
	}
	out, err = strictjson.Splice(params, meta, "_meta")
	return out, agents, err
}

// withoutEra takes the members of the modern era out of a _meta.
func withoutEra(meta []byte) ([]byte, error) {
	for _, name := range eraMembers {
		if _, ok := strictjson.Get(meta, name); !ok {
			continue
		}
		var err error
		if meta, err = strictjson.Splice(meta, nil, name); err != nil {
			return nil, err
		}
	}
	return meta, nil
}

// into puts the members of the modern era into a _meta. The revision is always
// the one negotiated with this server; a client that introduces itself keeps its words.
func (in *introduction) into(meta []byte) ([]byte, error) {
	for i, value := range [][]byte{in.version, in.info, in.capabilities} {
		if _, ok := strictjson.Get(meta, eraMembers[i]); ok && i > 0 {
			continue
		}
		var err error
		if meta, err = strictjson.Splice(meta, value, eraMembers[i]); err != nil {
			return nil, err
		}
	}
	return meta, nil
}

// canBeToken reports whether a JSON value can be a progress token.
func canBeToken(v []byte) bool {
	return v[0] == '"' || v[0] == '-' || v[0] >= '0' && v[0] <= '9'
}

// progressToken returns the token of a progress notification, if it is one of ours.
func progressToken(m Message) (uint64, bool) {
	v, ok := strictjson.Get(m.Params, "progressToken")
	if !ok {
		return 0, false
	}
	return number(v)
}

// number reads an id or a token of ours.
func number(v []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(v), 10, 64)
	return n, err == nil
}

// restored returns a progress notification with the agent's own token.
func restored(m Message, agents []byte) (Message, bool) {
	raw, err := strictjson.Splice(m.Raw, agents, "params", "progressToken")
	if err != nil {
		return Message{}, false
	}
	m.Raw = raw
	m.Params, _ = strictjson.Get(raw, "params")
	return m, true
}

// maxResultDepth bounds the nesting of a server's message. Results may nest
// deeper than calls: they have happened already.
const maxResultDepth = 512

// parseServers reads what a server sent. A response is read leniently below its
// top level: its effect has happened, and no strangeness in a result may turn it
// into an error (MCP-17). Requests and notifications are held to the strict reading.
func parseServers(raw []byte, max int) (Message, error) {
	lim := strictjson.Limits{Bytes: max, Depth: maxResultDepth, Lax: true}
	m, err := Parse(raw, lim)
	if err != nil {
		return salvage(raw, lim, err)
	}
	if m.Kind() != Response {
		lim.Lax = false
		return m, strictjson.Check(raw, lim)
	}
	return m, nil
}

// An id as it stands at the begin or the end of a response, where it cannot be
// part of a result.
var (
	idFirst = regexp.MustCompile(`^\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,`)
	idLast  = regexp.MustCompile(`,\s*"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// answered returns the id of the call that an unreadable message seems to
// answer. A server that lies about it can only lose an answer of its own.
func answered(raw []byte) (uint64, bool) {
	found := idFirst.FindSubmatch(raw[:min(len(raw), keptEnd)])
	if found == nil {
		found = idLast.FindSubmatch(raw[max(0, len(raw)-keptEnd):])
	}
	if found == nil {
		return 0, false
	}
	return number(found[1])
}

// keptEnd is how much of either end of a message is looked at for its id.
const keptEnd = 256

// salvage accepts two faults of servers in a response that can have only one
// meaning: no "jsonrpc" member, and a null error beside a result.
func salvage(raw []byte, lim strictjson.Limits, fault error) (Message, error) {
	m := Message{Raw: raw}
	var others bool
	err := strictjson.Members(raw, lim, func(name string, value []byte) error {
		switch name {
		case "jsonrpc":
		case "id":
			m.ID = value
		case "result":
			m.Result = value
		case "error":
			if string(value) != "null" {
				m.Error = value
			}
		default:
			others = true
		}
		return nil
	})
	if err != nil || others || m.Result == nil || m.Error != nil || checkID(m.ID) != nil {
		return Message{Raw: raw}, fault
	}
	return m, nil
}
