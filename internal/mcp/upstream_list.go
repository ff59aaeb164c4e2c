package mcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// Bounds of a list that a server offers (MCP-14). A list beyond them is an
// error and not a shorter list: what is missing could be what a rule was about.
const (
	MaxListItems = 5000
	MaxListBytes = 16 << 20
	MaxItemBytes = 1 << 20
	maxListPages = 1000
)

// ListAll fetches all pages of a list method ("tools/list") and returns the
// elements of the named member of its results ("tools"), each exactly as sent.
func ListAll(ctx context.Context, u Upstream, method, member string) ([][]byte, error) {
	l := listing{member: member, seen: make(map[string]bool)}
	var params []byte
	for range maxListPages {
		m, err := u.Call(ctx, method, params, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		cursor, err := l.page(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if cursor == nil {
			return l.items, nil
		}
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	return nil, fmt.Errorf("%s: the server has more than %d pages", method, maxListPages)
}

// listing gathers the pages of one list.
type listing struct {
	member string
	items  [][]byte
	bytes  int
	seen   map[string]bool // cursors
}

// page takes one page and returns the cursor of the next, nil after the last.
func (l *listing) page(m Message) (cursor []byte, err error) {
	if m.Error != nil {
		return nil, errorOf(m)
	}
	items, ok := strictjson.Get(m.Result, l.member)
	if !ok || items[0] != '[' {
		return nil, fmt.Errorf("the result has no list %q", l.member)
	}
	lim := strictjson.Limits{Bytes: len(items), Depth: maxResultDepth, Lax: true}
	if err := strictjson.Elements(items, lim, l.add); err != nil {
		return nil, err
	}
	cursor, ok = strictjson.Get(m.Result, "nextCursor")
	if !ok || cursor[0] != '"' {
		return nil, nil
	}
	if l.seen[string(cursor)] {
		return nil, errors.New("the server's cursors go round in a circle")
	}
	l.seen[string(cursor)] = true
	return cursor, nil
}

func (l *listing) add(_ int, item []byte) error {
	l.items = append(l.items, item)
	l.bytes += len(item)
	switch {
	case len(item) > MaxItemBytes:
		return fmt.Errorf("an element is larger than %d bytes", MaxItemBytes)
	case len(l.items) > MaxListItems:
		return fmt.Errorf("the list has more than %d elements", MaxListItems)
	case l.bytes > MaxListBytes:
		return fmt.Errorf("the list is larger than %d bytes", MaxListBytes)
	}
	return nil
}

// errorOf returns the error that a response carries.
func errorOf(m Message) *Error {
	e := &Error{Raw: m.Error}
	if v, ok := strictjson.Get(m.Error, "code"); ok {
		if n, err := strictjson.Int(v); err == nil {
			e.Code = int(n)
		}
	}
	if v, ok := strictjson.Get(m.Error, "message"); ok {
		e.Message, _ = strictjson.String(v)
	}
	if v, ok := strictjson.Get(m.Error, "data"); ok {
		e.Data = v
	}
	return e
}
