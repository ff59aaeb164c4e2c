package mcp

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ayegate/ayegate/internal/strictjson"
)

func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	in := "{\"a\":1}\n\r\n\n  {\"b\":2}\r\n" + long + "\n{\"c\":3}\n" + long[:40] + "\nlast"
	want := []string{`{"a":1}`, `  {"b":2}`, "too long", `{"c":3}`, long[:40], "last"}
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in)), "halves": iotest.HalfReader(strings.NewReader(in)),
	} {
		var got []string
		for l := NewLines(r, 40); ; {
			line, err := l.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if errors.Is(err, ErrLineTooLong) {
				line = []byte("too long")
			} else if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(line))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if _, err := NewLines(iotest.ErrReader(io.ErrClosedPipe), 40).Next(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a read error is reported as %v", err)
	}
}

// A message with newlines between its tokens is one line, with every token as it was.
func TestAppendLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a": 1.10}`:                           "{\"a\": 1.10}\n",
		"{\n\"a\":\t1.10,\r\n\"b\":\"\\n<&>\"}": "{\"a\":1.10,\"b\":\"\\n<&>\"}\n",
	} {
		if got := string(AppendLine(nil, []byte(in))); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func readEvents(t *testing.T, r io.Reader, max int) ([]Event, error) {
	t.Helper()
	var all []Event
	for s := NewEvents(r, max); ; {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	in := "\ufeff: hello\n\nid: 1-0\ndata: \n\n" +
		"event: message\r\nid: 1-1\r\ndata: {\"a\":\r\ndata:  1}\r\n\r\n" +
		"data:x\rretry: 1500\r\rretry: -1\rretry: x\nretry: 99999999999999999999\n\nid: a\x00b\n\n" +
		"data\ndata\n\nunknown: 1\n\nevent: ping\n\n: c\nid: 2-1\n: c\n\ndata: cut off"
	want := []Event{
		{ID: "1-0"},
		{Name: "message", ID: "1-1", Data: []byte("{\"a\":\n 1}")},
		{Data: []byte("x"), Retry: 1500 * time.Millisecond},
		{Data: []byte("\n")},
		{Name: "ping"},
		{ID: "2-1"},
	}
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in)),
		"halves": iotest.HalfReader(strings.NewReader(in)), "error with data": iotest.DataErrReader(strings.NewReader(in)),
	} {
		got, err := readEvents(t, r, 1000)
		if d := cmp.Diff(want, got, cmp.Transformer("text", func(b []byte) string { return string(b) })); d != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
}

// A line that ends in CR is complete before anything follows it: a server that
// only sends CR is not waited for.
func TestEventsDoNotWait(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	go func() { _, _ = io.WriteString(w, "data: 1\r\r") }()
	e, err := NewEvents(r, 100).Next()
	if err != nil || string(e.Data) != "1" {
		t.Errorf("%+v, %v", e, err)
	}
}

// MCP-16, MCP-17: what a stream can make us hold is bounded, in one line or many.
func TestEventsBounded(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]io.Reader{
		"one line":     io.MultiReader(strings.NewReader("data: "), endless("x")),
		"many lines":   endless("data: x\n"),
		"other fields": endless("foo: x\n"),
		"one comment":  io.MultiReader(strings.NewReader(":"), endless("x")),
		"returns":      io.MultiReader(strings.NewReader("data: 1\n"), endless("data: xxxxxxxxxxxxxxxx\r")),
	} {
		if _, err := readEvents(t, in, 10_000); !errors.Is(err, ErrEventTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewEvents(stuck{}, 100).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", err)
	}
}

type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e) <= len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// MCP-17: whatever is put into an event, one event comes out.
func TestAppendEvent(t *testing.T) {
	t.Parallel()
	e := Event{Name: "message\ndata: 1", ID: "a\r\nid: b", Data: []byte("{\"t\":\"\\ndata: x\\n\\n\",\r\n\n\"u\":1.10}"), Retry: 1500 * time.Millisecond}
	got, err := readEvents(t, strings.NewReader(string(AppendEvent(nil, e))), 1000)
	want := []Event{{Name: "message", ID: "a", Data: []byte(`{"t":"\ndata: x\n\n","u":1.10}`), Retry: e.Retry}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}

func TestBuilders(t *testing.T) {
	t.Parallel()
	id, params := []byte(`"a<b"`), []byte(`{"n":1.10,"t":"<x>&"}`)
	for want, got := range map[string][]byte{
		`{"jsonrpc":"2.0","id":"a<b","method":"tools/call","params":{"n":1.10,"t":"<x>&"}}`:                       NewRequest(id, "tools/call", params),
		`{"jsonrpc":"2.0","id":7,"method":"ping"}`:                                                                NewRequest([]byte("7"), "ping", nil),
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"n":1.10,"t":"<x>&"}}`:                      NewNotification("notifications/progress", params),
		`{"jsonrpc":"2.0","id":"a<b","result":{"n":1.10,"t":"<x>&"}}`:                                             NewResult(id, params),
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"a \"b\" <c>\n","data":{"n":1.10,"t":"<x>&"}}}`: NewError([]byte("7"), &Error{Code: CodeInvalidParams, Message: "a \"b\" <c>\n", Data: params}),
		`{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`:                                                 NewError(nil, &Error{Code: CodeParse, Message: "x"}),
		`{"jsonrpc":"2.0","id":7,"error":{"x":1e999}}`:                                                            NewError([]byte("7"), &Error{Code: 1, Raw: []byte(`{"x":1e999}`)}),
	} {
		if string(got) != want {
			t.Errorf("built %s, want %s", got, want)
		}
	}
}

func TestMeta(t *testing.T) {
	t.Parallel()
	params := []byte(`{"name":"x","arguments":{"n":1.10},"_meta":{"claudecode/toolUseId":"toolu_1","progressToken":"t-1"}}`)
	if got := string(ProgressToken(params)); got != `"t-1"` {
		t.Errorf("token %s", got)
	}
	got, err := WithProgressToken(params, []byte("17"))
	if want := `{"name":"x","arguments":{"n":1.10},"_meta":{"claudecode/toolUseId":"toolu_1","progressToken":17}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	got, err = WithProgressToken(nil, []byte("17"))
	if want := `{"_meta":{"progressToken":17}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	note := []byte(`{"progressToken":17,"progress":1.50}`)
	if got := string(NotifiedToken(note)); got != "17" {
		t.Errorf("token %s", got)
	}
	got, err = WithNotifiedToken(note, []byte(`"t-1"`))
	if want := `{"progressToken":"t-1","progress":1.50}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if Meta(nil, "x") != nil || Meta([]byte(`{"_meta":7}`), "x") != nil || ProgressToken([]byte(`{}`)) != nil {
		t.Error("found what is not there")
	}
}

func TestIDKey(t *testing.T) {
	t.Parallel()
	if IDKey([]byte(`"a"`)) != IDKey([]byte(`"\u0061"`)) {
		t.Error("two spellings of one id differ")
	}
	if IDKey([]byte(`"1"`)) == IDKey([]byte(`1`)) {
		t.Error("text and number are the same id")
	}
	if IDKey([]byte(`"a"`)) == IDKey([]byte(`"b"`)) || IDKey([]byte("1")) == IDKey([]byte("12")) {
		t.Error("two ids are the same")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(call(1, "echo", `{"a":[1.10,"x"]}`)))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"\u0061","result":{"a":1,"a":2}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","error":{"code":1}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","method":"notifications/x"}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, lim := range []strictjson.Limits{{}, {Lax: true}} {
			m, err := Parse(raw, lim)
			if err != nil {
				if m.Kind() == Request || m.Params != nil || m.Result != nil {
					t.Fatalf("refused, yet usable: %+v", m)
				}
				var e *Error
				if !errors.As(err, &e) {
					t.Fatalf("%T", err)
				}
				if _, err := Parse(NewError(m.ID, e), strictjson.Limits{}); err != nil {
					t.Fatalf("the refusal is no message: %v", err)
				}
				continue
			}
			var again []byte
			switch m.Kind() {
			case Request:
				again = NewRequest(m.ID, m.Method, m.Params)
			case Notification:
				again = NewNotification(m.Method, m.Params)
			case Response:
				if m.Result == nil {
					again = NewError(m.ID, &Error{Raw: m.Error})
				} else {
					again = NewResult(m.ID, m.Result)
				}
			default:
				t.Fatalf("no kind: %s", raw)
			}
			b, err := Parse(AppendLine(nil, again), lim)
			if err != nil || b.Kind() != m.Kind() || IDKey(b.ID) != IDKey(m.ID) || b.Method != m.Method {
				t.Fatalf("%s rebuilt as %s: %v", raw, again, err)
			}
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\ndata: x\r\n\r\nretry: 5\rdata\r\r: c\n\n"))
	f.Add([]byte("\ufeffevent: a\ndata:b\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, err := readEvents(t, strings.NewReader(string(in)), 64)
		pieces, err2 := readEvents(t, iotest.OneByteReader(strings.NewReader(string(in))), 64)
		if d := cmp.Diff(whole, pieces); d != "" || !errors.Is(err, err2) {
			t.Fatalf("depends on how it arrives: %v %v %s", err, err2, d)
		}
		for _, e := range whole {
			if strings.Contains(e.Name, "\x00") {
				continue // AppendEvent ends a field there
			}
			again, err := readEvents(t, strings.NewReader(string(AppendEvent(nil, Event{Name: e.Name, ID: e.ID, Retry: e.Retry}))), 256)
			if err != nil || len(again) != 1 || again[0].Name != e.Name || again[0].ID != e.ID || again[0].Retry != e.Retry {
				t.Fatalf("%+v rewritten as %+v, %v", e, again, err)
			}
		}
	})
}
