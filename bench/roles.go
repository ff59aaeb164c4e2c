package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// serveRole is one process beside the measured ones.
func serveRole(role, listen, upstream, dir string) error {
	var h http.Handler
	switch role {
	case "echo":
		h = http.HandlerFunc(echo)
	case "proxy":
		u, err := url.Parse(upstream)
		if err != nil {
			return err
		}
		p := httputil.NewSingleHostReverseProxy(u)
		p.Transport = transport()
		h = p
	case "floor":
		j, err := openJournal(filepath.Join(dir, "journal"))
		if err != nil {
			return err
		}
		h = &floor{upstream: upstream, journal: j, client: &http.Client{Transport: transport()}}
	default:
		return fmt.Errorf("no role %q", role)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	return (&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}).Serve(l)
}

func transport() *http.Transport {
	return &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, DisableCompression: true}
}

// echo is the least MCP server: legacy, without a session, JSON answers.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	id, ok := strictjson.Get(body, "id")
	if !ok {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	method, _ := strictjson.Get(body, "method")
	var result []byte
	switch string(method) {
	case `"initialize"`:
		result = []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`)
	case `"tools/list"`:
		result = []byte(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"pay","inputSchema":{"type":"object"}}]}`)
	case `"tools/call"`:
		args, _ := strictjson.Get(body, "params", "arguments")
		result = append(strictjson.AppendString([]byte(`{"content":[{"type":"text","text":`), string(args)), `}]}`...)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, id)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(bytes.Join([][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), result, []byte(`}`)}, nil))
}

// floor is the yardstick: what any gateway with these guarantees has to do.
type floor struct {
	upstream string
	journal  *journal
	client   *http.Client
}

func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var params []byte
	err = strictjson.Members(body, strictjson.Limits{}, func(name string, value []byte) error {
		if name == "params" {
			params = value
		}
		return nil
	})
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	canonical := []byte("{}")
	if args, ok := strictjson.Get(params, "arguments"); ok {
		if canonical, err = strictjson.Canonical(nil, args, strictjson.Limits{}); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	sum := sha256.Sum256(canonical)
	if f.journal.write(fmt.Appendf(make([]byte, 0, 512), "intent %x %s\n", sum, canonical)) != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, f.upstream, bytes.NewReader(body))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := f.client.Do(req)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	outcome := sha256.Sum256(answer)
	if f.journal.write(fmt.Appendf(make([]byte, 0, 256), "outcome %x %x\n", sum, outcome)) != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	w.Write(answer)
}

// journal appends with group commit: whoever finds it idle writes for everybody
// who waits.
type journal struct {
	f *os.File

	mu      sync.Mutex
	busy    bool
	pending []byte
	waiting []chan error
}

func openJournal(name string) (*journal, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &journal{f: f}, err
}

func (j *journal) write(line []byte) error {
	done := make(chan error, 1)
	j.mu.Lock()
	j.pending = append(j.pending, line...)
	j.waiting = append(j.waiting, done)
	if j.busy {
		j.mu.Unlock()
		return <-done
	}
	j.busy = true
	for len(j.waiting) > 0 {
		batch, waiting := j.pending, j.waiting
		j.pending, j.waiting = nil, nil
		j.mu.Unlock()
		_, err := j.f.Write(batch)
		err = errors.Join(err, datasync(j.f))
		for _, w := range waiting {
			w <- err
		}
		j.mu.Lock()
	}
	j.busy = false
	j.mu.Unlock()
	return <-done
}
