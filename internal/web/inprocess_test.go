package web_test

import (
	"io"
	"net/http"
	"sync"
)

// inProcess carries requests to a handler without a network, so that time in a
// test can be its own. Answers stream.
type inProcess struct{ handler http.Handler }

func (p *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.Host, in.RemoteAddr, in.RequestURI = r.URL.Host, "127.0.0.1:1", r.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	body, to := io.Pipe()
	w := &streamed{header: http.Header{}, body: to, begun: make(chan struct{})}
	go func() {
		defer to.Close()
		p.handler.ServeHTTP(w, in)
		w.WriteHeader(http.StatusOK)
	}()
	select {
	case <-w.begun:
	case <-r.Context().Done():
		body.Close()
		return nil, r.Context().Err()
	}
	go func() { // a client that goes away stops reading
		<-r.Context().Done()
		body.CloseWithError(r.Context().Err())
	}()
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Header: w.header.Clone(), Body: body, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}, nil
}

type streamed struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	begun  chan struct{}
	status int
}

func (s *streamed) Header() http.Header { return s.header }

func (s *streamed) WriteHeader(status int) {
	s.once.Do(func() { s.status = status; close(s.begun) })
}

func (s *streamed) Write(b []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return s.body.Write(b)
}

func (s *streamed) Flush() { s.WriteHeader(http.StatusOK) }
