package mcp

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// checkHost refuses requests that a page in a browser could have been tricked
// into sending (MCP-07): Host must be one of ours, and so must Origin, if any.
func (e *Endpoint) checkHost(r *http.Request) (problem string) {
	host := strings.ToLower(r.Host)
	switch {
	case r.URL.Host != "":
		return "the request target must be a path"
	case !e.ours(host):
		return "this Host is not served here"
	case len(r.Header["Origin"]) == 0:
		return ""
	case len(r.Header["Origin"]) > 1:
		return "more than one Origin"
	}
	origin := strings.ToLower(r.Header["Origin"][0])
	if slices.ContainsFunc(e.c.AllowedOrigins, func(o string) bool { return strings.EqualFold(o, origin) }) {
		return ""
	}
	if len(e.c.AllowedOrigins) == 0 && (origin == "http://"+host || origin == "https://"+host) {
		return ""
	}
	return "this Origin is not served here"
}

// ours reports whether a Host names this endpoint.
func (e *Endpoint) ours(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if len(e.c.AllowedHosts) == 0 {
		addr, err := netip.ParseAddr(name)
		return name == "localhost" || err == nil && addr.IsLoopback()
	}
	return slices.ContainsFunc(e.c.AllowedHosts, func(a string) bool {
		return strings.EqualFold(a, host) || strings.EqualFold(strings.Trim(a, "[]"), name)
	})
}

// single are the headers that must not be there twice. http.Header.Get would
// take the first, and whatever stands in front of us may take the last (MCP-02).
var single = []string{
	"Authorization", "Content-Type", "Content-Encoding",
	HeaderVersion, HeaderSession, HeaderMethod, HeaderName, HeaderLastEvent,
}

// checkHeaderForm refuses headers that two readers could read in two ways.
func checkHeaderForm(h http.Header) (problem string) {
	for _, name := range single {
		if len(h[name]) > 1 {
			return "header " + name + " is there more than once"
		}
	}
	for name, values := range h {
		if len(name) < 4 || !strings.EqualFold(name[:3], "mcp") {
			continue
		}
		if strings.Contains(name, "_") {
			return "a header name of MCP has no underscore"
		}
		if len(values) > 1 {
			return "header " + name + " is there more than once"
		}
		if !isHeaderText(values[0]) {
			return "header " + name + " is not printable ASCII"
		}
	}
	return ""
}

// checkContent refuses bodies that are not plain JSON, with the HTTP status.
func checkContent(h http.Header) (status int, problem string) {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return http.StatusUnsupportedMediaType, "compressed bodies are not accepted"
	}
	kind := h.Get("Content-Type")
	if kind == "application/json" {
		return 0, ""
	}
	media, params, err := mime.ParseMediaType(kind)
	if err != nil || media != "application/json" {
		return http.StatusUnsupportedMediaType, "Content-Type must be application/json"
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return http.StatusUnsupportedMediaType, "JSON is UTF-8"
	}
	return 0, ""
}

// accepts reports whether the Accept headers allow a media type. None allow all.
func accepts(h http.Header, media string) bool {
	values := h["Accept"]
	if len(values) == 0 {
		return true
	}
	group, _, _ := strings.Cut(media, "/")
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(part, ";")
			name = strings.ToLower(strings.TrimSpace(name))
			if (name == media || name == "*/*" || name == group+"/*") && !refusedQuality(params) {
				return true
			}
		}
	}
	return false
}

// refusedQuality reports whether the parameters of an Accept entry say q=0.
func refusedQuality(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		if q, ok := strings.CutPrefix(strings.TrimSpace(p), "q="); ok {
			return strings.Trim(q, "0.") == "" && q != ""
		}
	}
	return false
}

// errBodyTooLarge says that a body exceeds [EndpointLimits.Body].
var errBodyTooLarge = errors.New("the body is larger than the limit")

// limitBody sets the deadline of a body, before anything is decided: net/http
// reads the rest of a body also when its request has been refused (OPS-03). When
// the body has been read, net/http lifts the deadline itself.
func (q *request) limitBody() {
	if q.r.ContentLength != 0 {
		_ = q.rc.SetReadDeadline(q.e.c.Now().Add(q.e.c.Limits.BodyTime))
	}
}

// readBody reads the body under its limits. A length that is declared too large is
// refused before a byte is read (CAN-10).
func (q *request) readBody() ([]byte, error) {
	body, err := q.readLimited()
	if err != nil {
		// The rest is of no use, and the connection of none with it.
		_ = q.rc.SetReadDeadline(q.e.c.Now())
		q.w.Header().Set("Connection", "close")
		return nil, err
	}
	return body, nil
}

func (q *request) readLimited() ([]byte, error) {
	limit := q.e.c.Limits.Body
	if q.r.ContentLength > limit {
		return nil, errBodyTooLarge
	}
	if q.r.ContentLength < 0 && q.r.ProtoMajor == 1 {
		// Of a chunked body that also had a Content-Length net/http shows no trace, so
		// no connection that carried a chunked body carries another request: what a
		// proxy took for the next one is never served (MCP-25).
		q.w.Header().Set("Connection", "close")
	}
	if n := q.r.ContentLength; n >= 0 && n <= smallBody {
		body := make([]byte, n)
		_, err := io.ReadFull(q.r.Body, body)
		return body, err
	}
	var body bytes.Buffer
	n, err := body.ReadFrom(io.LimitReader(q.r.Body, limit+1))
	switch {
	case err == nil && n > limit:
		err = errBodyTooLarge
	case err == nil && q.r.ContentLength >= 0 && n < q.r.ContentLength:
		err = io.ErrUnexpectedEOF
	}
	return body.Bytes(), err
}

// smallBody is what may be allocated because a request says that it is coming.
const smallBody = 16 << 10
