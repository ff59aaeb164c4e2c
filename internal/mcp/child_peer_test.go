package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

// A raw server for the tests: this test binary, started again with
// peerVariable set, which says how the server behaves. It speaks JSON only as
// far as it must, so that what a test sees is what went over the wire.
const peerVariable = "AYEGATE_TEST_PEER"

func init() {
	if how := os.Getenv(peerVariable); how != "" {
		(&peer{how: how, in: bufio.NewReader(os.Stdin), out: os.Stdout}).run()
		os.Exit(0)
	}
}

// peer answers one connection. Its behaviours are words in how.
type peer struct {
	how string
	in  *bufio.Reader

	lock sync.Mutex
	out  io.Writer

	discover string // id of a server/discover that waits for its answer
}

type peerMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func (p *peer) is(word string) bool { return strings.Contains(" "+p.how+" ", " "+word+" ") }

func (p *peer) run() {
	if p.is("stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	if p.is("noisy") {
		fmt.Fprintln(os.Stderr, "warming up")
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 100_000))
		fmt.Fprint(os.Stderr, "last words")
		p.say("this is no JSON")
		p.say("")
		p.say("{not JSON either")
	}
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			if p.is("stubborn") {
				select {}
			}
			return
		}
		var m peerMessage
		if err := json.Unmarshal(line, &m); err != nil {
			p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"broken line"}}`)
			continue
		}
		p.answer(m, bytes.TrimRight(line, "\n"))
	}
}

func (p *peer) say(format string, args ...any) {
	p.lock.Lock()
	defer p.lock.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

func (p *peer) result(id json.RawMessage, result string) {
	p.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

const peerDiscovered = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"peer"}},"ttlMs":0,"cacheScope":"private"}`

func (p *peer) answer(m peerMessage, line []byte) {
	switch m.Method {
	case methodDiscover:
		switch {
		case p.is("modern"):
			p.result(m.ID, peerDiscovered)
		case p.is("exits"):
			os.Exit(1)
		case p.is("slow"):
			p.discover = string(m.ID)
		case p.is("silent"):
		default:
			p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"not initialized"}}`, m.ID)
		}
	case methodInitialize:
		p.initialize(m)
	case methodInitialized:
	case methodCancelled:
		p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"cancelled","saw":%s}}`, m.Params)
	case "tools/list":
		p.list(m)
	case "":
		p.answered(m, line)
	default:
		if m.ID == nil {
			p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"saw","line":%q}}`, line)
			return
		}
		p.call(m, line)
	}
}

func (p *peer) initialize(m peerMessage) {
	if p.is("slow") {
		p.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, p.discover, peerDiscovered)
		p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
		return
	}
	if p.is("early") {
		p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		p.say(`{"jsonrpc":"2.0","id":"early","method":"ping"}`)
	}
	version := "2025-11-25"
	if p.is("old") {
		version = "2024-11-05"
	}
	if p.is("alien") {
		version = "1999-01-01"
	}
	p.result(m.ID, `{"protocolVersion":"`+version+`","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"peer","n":1.10},"instructions":"be kind","saw":`+string(m.Params)+`}`)
}

// list has two pages whose items a typed reader would damage.
func (p *peer) list(m peerMessage) {
	var params struct{ Cursor string }
	_ = json.Unmarshal(m.Params, &params)
	switch {
	case p.is("circle"):
		p.result(m.ID, `{"tools":[{"name":"a"}],"nextCursor":"again"}`)
	case p.is("many"):
		p.result(m.ID, `{"tools":[`+strings.Repeat(`{"name":"a"},`, MaxListItems)+`{"name":"a"}]}`)
	case params.Cursor == "":
		p.result(m.ID, `{"tools":[ `+peerTools[0]+` ],"nextCursor":"p\u0032"}`)
	case params.Cursor == "p2":
		p.result(m.ID, `{"tools":[`+peerTools[1]+`,`+peerTools[2]+`],"x":1}`)
	}
}

var peerTools = []string{
	`{ "name":"z", "inputSchema":{"type":"object","properties":{"b":{"maximum":12345678901234567890},"a":{"multipleOf":1.10}}}, "execution":{"taskSupport":"required"} }`,
	`{"x-unknown":[1E3,-0.0],"name":"<x>&","annotations":{"odd":true}}`,
	`{"name":"dup","name":"dup2"}`,
}

// answered takes the response to a request of ours: the call that asked gets it
// as its result.
func (p *peer) answered(m peerMessage, line []byte) {
	var id string
	if json.Unmarshal(m.ID, &id) != nil {
		return
	}
	if call, ok := strings.CutPrefix(id, "ask-"); ok {
		p.result(json.RawMessage(call), string(line))
	}
}

// call does what the name of the called tool says.
func (p *peer) call(m peerMessage, line []byte) {
	var params struct {
		Name string
		Meta struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params)
	id, token := m.ID, params.Meta.ProgressToken
	word, arg, _ := strings.Cut(params.Name, ":")
	switch word {
	case "hang":
		if token != nil {
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, token)
		}
	case "die":
		os.Exit(3)
	case "answer-and-die":
		p.result(id, `{"done":true}`)
		os.Exit(0)
	case "stop-reading":
		p.result(id, `{}`)
		select {}
	case "raw":
		p.say(strings.ReplaceAll(peerRaw[arg], "ID", string(id)))
	case "big":
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}`, id, strings.Repeat("a", 1<<20))
	case "big-last":
		p.say(`{"result":{"text":"%s"},"jsonrpc":"2.0","id":%s}`, strings.Repeat("a", 1<<20), id)
	case "progress":
		p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1.0,"message":"one"}}`, token)
		p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":999999,"progress":9}}`)
		p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":%s}}`, token)
		p.result(id, `{"token":`+string(token)+`}`)
	case "flood":
		for range 20_000 {
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, token)
		}
		p.result(id, `{}`)
	case "ask":
		p.say(`{"jsonrpc":"2.0","id":"ask-%s","method":%q,"params":{"n":1.10}}`, id, arg)
	case "ask-then-withdraw":
		p.say(`{"jsonrpc":"2.0","id":"ask-%s","method":"elicitation/create","params":{}}`, id)
		p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"ask-%s"}}`, id)
		p.result(id, `{}`)
	case "pings":
		for i := range 10_000 {
			p.say(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, i)
		}
		p.result(id, `{}`)
	case "offspring":
		cmd := exec.Command("sh", "-c", "exec 3>"+arg+"; sleep 600")
		if err := cmd.Start(); err != nil {
			p.result(id, `{"error":true}`)
			return
		}
		p.result(id, `{}`)
	case "listen":
		p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, id)
	case "environment":
		all, _ := json.Marshal(os.Environ())
		argv, _ := json.Marshal(os.Args)
		dir, _ := os.Getwd()
		p.result(id, fmt.Sprintf(`{"env":%s,"args":%s,"dir":%q}`, all, argv, dir))
	default:
		p.result(id, string(line))
	}
}

// Answers that go over the wire as they stand, with ID for the id of the call.
var peerRaw = map[string]string{
	"twice":       `{"jsonrpc":"2.0","id":ID,"result":{"n":1}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{"n":2}}`,
	"wrong-id":    `{"jsonrpc":"2.0","id":424242,"result":{"n":0}}` + "\n" + `{"jsonrpc":"2.0","id":"ID","result":{"n":0}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{"n":1}}`,
	"broken":      `{"jsonrpc":"2.0","id":ID,"result":{"n":1`,
	"breaks":      `{"jsonrpc":"2.0","id":ID,"result":{` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{`,
	"uninvited":   `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":1}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{}}`,
	"batch":       `[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":ID,"result":{"n":1}}]`,
	"both":        `{"jsonrpc":"2.0","id":ID,"result":{"n":1},"error":{"code":1,"message":"x"}}`,
	"null-error":  `{"id":ID,"result":{"n":1},"error":null}`,
	"duplicates":  `{"jsonrpc":"2.0","id":ID,"result":{"n":1,"n":2,"s":"\ud800","\u0000":1e999}}`,
	"strange":     ` {"result" : {"content":[{"type":"hologram","z":1.10}],"isError":false,"structuredContent":{"b":9007199254740993,"a":1e3},"_meta":{"k":12345678901234567890}} , "id":ID,"jsonrpc":"2.0"}`,
	"error":       `{"jsonrpc":"2.0","id":ID,"error":{"code":-32042,"message":"x","data":{"n":1.10},"odd":1}}`,
	"odd-id-ask":  `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{}}`,
	"carriage":    "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\r",
	"dup-message": `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":1,"progressToken":"stolen"}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{}}`,
	"sse":         `{"jsonrpc":"2.0","id":ID,"result":{"text":"a\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\n"}}`,
}
