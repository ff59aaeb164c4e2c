package mcp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// maxMethod bounds the name of a method.
const maxMethod = 128

// Parse reads one JSON-RPC message. It checks all of raw (lim says how strictly
// below the top level) and decodes the envelope only. A single message is the
// only thing it accepts: see [ParseBatch] for the revision that knew batches.
//
// The error is an [*Error] ready to be sent: it names the fault and its place and
// says that nothing ran. Together with an error the Message has its ID set when
// that much was readable, so that the refusal can name the request.
func Parse(raw []byte, lim strictjson.Limits) (Message, error) {
	m := Message{Raw: raw}
	if startsArray(raw) {
		return m, invalid("", "the body must be a single message, not an array")
	}
	var version, method []byte
	var variant error
	err := strictjson.Members(raw, lim, func(name string, value []byte) error {
		switch name {
		case "jsonrpc":
			version = value
		case "id":
			m.ID = value
		case "method":
			method = value
		case "params":
			m.Params = value
		case "result":
			m.Result = value
		case "error":
			m.Error = value
		default:
			if variant == nil {
				variant = refuseVariant("", name, envelopeMembers)
			}
		}
		return nil
	})
	if err != nil {
		return Message{Raw: raw}, asError(err)
	}
	if err := m.decode(version, method); err != nil {
		return Message{Raw: raw, ID: m.ID}, err
	}
	if variant != nil {
		return Message{Raw: raw, ID: m.ID}, variant
	}
	return m.checked(lim)
}

// decode reads the members whose value is text. A bad id is not kept.
func (m *Message) decode(version, method []byte) error {
	if m.ID != nil {
		if err := checkID(m.ID); err != nil {
			m.ID = nil
			return invalid("/id", err.Error())
		}
	}
	if string(version) != `"2.0"` {
		return invalid("/jsonrpc", `must be "2.0"`)
	}
	if method == nil {
		return nil
	}
	name, err := strictjson.String(method)
	if err != nil || !isMethod(name) {
		return invalid("/method", "must be a string of printable ASCII without spaces")
	}
	m.Method = name
	return nil
}

// checked returns m if its members go together, and its id alone otherwise.
func (m Message) checked(lim strictjson.Limits) (Message, error) {
	err := m.checkForm()
	if err == nil && m.Params != nil && !lim.Lax {
		err = checkParams(m.Params)
	}
	if err != nil {
		return Message{Raw: m.Raw, ID: m.ID}, err
	}
	return m, nil
}

// ParseBatch reads a JSON array of at most max messages, or one message. It
// returns either all messages or an error: no part of a faulty batch may run.
func ParseBatch(raw []byte, lim strictjson.Limits, max int) (messages []Message, batch bool, err error) {
	if !startsArray(raw) {
		m, err := Parse(raw, lim)
		return []Message{m}, false, err
	}
	err = strictjson.Elements(raw, lim, func(i int, value []byte) error {
		if i >= max {
			return invalid("", fmt.Sprintf("a batch holds at most %d messages", max))
		}
		m, err := Parse(value, lim)
		if err != nil {
			return err
		}
		messages = append(messages, m)
		return nil
	})
	if err != nil {
		return nil, true, asError(err)
	}
	if len(messages) == 0 {
		return nil, true, invalid("", "the batch is empty")
	}
	return messages, true, nil
}

func startsArray(raw []byte) bool {
	for _, c := range raw {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '['
		}
	}
	return false
}

// checkForm refuses messages that are two kinds at once, or none.
func (m Message) checkForm() error {
	answers := 0
	if m.Result != nil {
		answers++
	}
	if m.Error != nil {
		answers++
	}
	switch {
	case m.Method != "" && answers > 0:
		return invalid("", "a message cannot have both a method and a result or an error")
	case m.Method == "" && answers == 0:
		return invalid("", "a message needs a method, a result or an error")
	case m.Method == "" && answers == 2:
		return invalid("", "a response cannot have both a result and an error")
	case m.Result != nil && m.ID == nil:
		return invalid("/id", "a result needs the id of its request")
	case m.Error != nil && m.Error[0] != '{':
		return invalid("/error", "must be an object")
	case m.Params != nil && m.Params[0] != '{':
		return invalid("/params", "must be an object")
	}
	return nil
}

// CheckShape refuses the notification form of a request and the request form of
// a notification: "tools/call" without an id must neither run nor be dropped in
// silence (MCP-08).
func CheckShape(m Message) *Error {
	notification := strings.HasPrefix(m.Method, "notifications/")
	switch kind := m.Kind(); {
	case kind == Notification && !notification:
		return invalid("/id", strconv.Quote(m.Method)+" is a request and needs an id")
	case kind == Request && notification:
		return invalid("/id", strconv.Quote(m.Method)+" is a notification and takes no id")
	}
	return nil
}

// parseAgent reads a message of an agent. What asks is read strictly. What answers
// (where an answer can be) goes back to the server that asked and is judged by
// nobody here: below its top level it need only be JSON.
func parseAgent(raw []byte, lim strictjson.Limits, answers bool) (Message, error) {
	m, err := Parse(raw, lim)
	if err == nil {
		if e := CheckShape(m); e != nil {
			return m, e
		}
		return m, nil
	}
	if answers {
		lim.Lax = true
		if m, err := Parse(raw, lim); err == nil && m.Kind() == Response {
			return m, nil
		}
	}
	return m, err
}

// Names that a lenient reader behind us would take for one another when only
// their case differs. A message with such a variant is refused, because what we
// judge and what the server reads could be two things (CAN-02, CAN-03).
var (
	envelopeMembers = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramsMembers   = []string{
		"name", "arguments", "uri", "_meta", "task", "taskId", "cursor", "ref", "argument", "level",
		"inputResponses", "requestState", "protocolVersion", "capabilities", "clientInfo",
		"requestId", "progressToken", "notifications",
	}
	metaMembers = []string{"progressToken", MetaVersion, MetaCapabilities, MetaClientInfo}
)

func refuseVariant(at, name string, known []string) error {
	for _, k := range known {
		if len(name) >= len(k) && name != k && strings.EqualFold(name, k) {
			return invalid(at+"/"+pointerToken(name), fmt.Sprintf("is a variant of %q, which a server could read in its place", k))
		}
	}
	return nil
}

// checkParams refuses variants of the names that the protocol defines directly
// in params, which were checked with their message, and in its _meta.
func checkParams(params []byte) error {
	var meta []byte
	err := strictjson.Each(params, func(name string, value []byte) error {
		if name == "_meta" {
			meta = value
			return nil
		}
		return refuseVariant("/params", name, paramsMembers)
	})
	if err != nil || meta == nil {
		return err
	}
	if meta[0] != '{' {
		return invalid("/params/_meta", "must be an object")
	}
	return strictjson.Each(meta, func(name string, _ []byte) error {
		return refuseVariant("/params/_meta", name, metaMembers)
	})
}

// isMethod reports whether s can be the name of a method.
func isMethod(s string) bool {
	if s == "" || len(s) > maxMethod {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// NewRequest returns a request. id is JSON, params a JSON object or nil; both go
// in byte for byte.
func NewRequest(id []byte, method string, params []byte) []byte {
	b := make([]byte, 0, len(id)+len(method)+len(params)+48)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	return appendCall(append(b, ','), method, params)
}

// NewNotification returns a notification. params is a JSON object or nil.
func NewNotification(method string, params []byte) []byte {
	b := make([]byte, 0, len(method)+len(params)+48)
	return appendCall(append(b, `{"jsonrpc":"2.0",`...), method, params)
}

func appendCall(b []byte, method string, params []byte) []byte {
	b = append(b, `"method":`...)
	b = strictjson.AppendString(b, method)
	if params != nil {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

// NewResult returns the response that carries a result, a JSON value.
func NewResult(id, result []byte) []byte {
	b := make([]byte, 0, len(id)+len(result)+40)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":`...)
	b = append(b, result...)
	return append(b, '}')
}

// NewError returns the response that carries an error. id is nil when the
// request's id could not be read; MCP then leaves the member out.
func NewError(id []byte, e *Error) []byte {
	b := make([]byte, 0, len(id)+len(e.Message)+len(e.Data)+len(e.Raw)+80)
	b = append(b, `{"jsonrpc":"2.0",`...)
	if id != nil {
		b = append(b, `"id":`...)
		b = append(b, id...)
		b = append(b, ',')
	}
	b = append(b, `"error":`...)
	return append(appendError(b, e), '}')
}

func appendError(b []byte, e *Error) []byte {
	if e.Raw != nil {
		return append(b, e.Raw...)
	}
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(e.Code), 10)
	b = append(b, `,"message":`...)
	b = strictjson.AppendString(b, e.Message)
	if e.Data != nil {
		b = append(b, `,"data":`...)
		b = append(b, e.Data...)
	}
	return append(b, '}')
}

// parseError turns a fault of the JSON into the error to send.
func parseError(err error) *Error {
	var fault *strictjson.Error
	if !errors.As(err, &fault) {
		return &Error{Code: CodeParse, Message: nothingRan("the message is not acceptable JSON: " + err.Error())}
	}
	if fault.Code == strictjson.WrongType {
		return invalid("", "the message must be a JSON object")
	}
	return &Error{
		Code:    CodeParse,
		Message: nothingRan("the message is not acceptable JSON: " + fault.Error()),
		Data:    faultData(fault),
	}
}

func faultData(f *strictjson.Error) []byte {
	b := append([]byte(nil), `{"fault":`...)
	b = strictjson.AppendString(b, string(f.Code))
	b = append(b, `,"pointer":`...)
	b = strictjson.AppendString(b, f.Pointer)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, int64(f.Offset), 10)
	return append(b, '}')
}

// invalid says that a message is JSON, and no message we accept. at is a JSON
// pointer.
func invalid(at, problem string) *Error {
	e := &Error{Code: CodeInvalidRequest}
	if at == "" {
		e.Message = nothingRan("invalid request: " + problem)
		return e
	}
	e.Message = nothingRan("invalid request: " + at + " " + problem)
	e.Data = append(strictjson.AppendString([]byte(`{"pointer":`), at), '}')
	return e
}

// asError keeps our own errors and turns faults of the JSON into ours.
func asError(err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return parseError(err)
}

// pointerToken escapes a name for a JSON pointer (RFC 6901).
func pointerToken(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
