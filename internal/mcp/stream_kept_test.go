package mcp

import (
	"errors"
	"testing"
)

// RACE-07: who answers must hear that nobody read the answer, or the result of an
// approved call counts as received by an agent that was killed.
func TestReplyToNobodyIsKept(t *testing.T) {
	early := newStream("a", 1)
	if err := early.reply([]byte(`{}`), 200); err != nil {
		t.Errorf("a reader who is still to come is not missed: %v", err)
	}
	left := newStream("b", 1)
	r := newReader()
	left.attach(r, 0)
	left.detach(r)
	if err := left.reply([]byte(`{}`), 200); !errors.Is(err, ErrKept) {
		t.Errorf("the reader has left: %v", err)
	}
	again := newReader()
	left.attach(again, 0)
	if events, _ := left.take(again); len(events) == 0 {
		t.Error("the answer is kept for whoever resumes the stream")
	}
}
