package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
)

func TestAllowedCallRunsAndIsHandedOn(t *testing.T) {
	s := legacyServer()
	r := newRig(t, one(s))
	defer r.close()
	x := r.say(agent("bot"), "tools/call", `{"name":"echo","arguments":{"b":1.0,"a":"x"},"_meta":{"n":9007199254740993},"x-odd":1.10}`)
	if want := `{"content":[{"type":"text","text":"done"}],"isError":false,"n":1.10}`; x.result != want {
		t.Errorf("result %s, want %s", x.result, want)
	}
	want := `{"name":"echo","arguments":{"a":"x","b":1},"_meta":{"n":9007199254740993},"x-odd":1.10}`
	if got := s.sent("tools/call"); len(got) != 1 || got[0] != want {
		t.Errorf("the server got %q, want %q", got, want)
	}
}

func TestHeldCallRunsAfterApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		x, _ := r.start(agent("bot"), "tools/call", `{"name":"write","arguments":{"p":"x"},"_meta":{"progressToken":"t"}}`)
		synctest.Wait()
		sleep(25 * time.Second)
		r.decide(r.pending(), true)
		<-x.done
		if want := `{"content":[{"type":"text","text":"done"}],"isError":false,"n":1.10}`; x.result != want {
			t.Errorf("result %s, want %s", x.result, want)
		}
		if n := len(x.told("notifications/progress")); n != 3 {
			t.Errorf("%d progress notifications: %q", n, x.notes)
		}
		synctest.Wait()
		if q := r.last(); q.State != approval.Executed || q.Execution.PickedUp.IsZero() {
			t.Errorf("state %s, picked up %v", q.State, q.Execution.PickedUp)
		}
	})
}

func TestBlockedResultAfterTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		began := time.Now()
		x := r.say(agent("bot"), "tools/call", `{"name":"write","arguments":{}}`)
		if held := time.Since(began); held != 45*time.Second {
			t.Errorf("held for %s", held)
		}
		x.contains(t, "TOOL_BLOCKED_PENDING_APPROVAL", `"isError":true`, "await_approval", `"dev.ayegate/approval":{"id":`, `"status":"pending"`)
		q := r.pending()
		r.decide(q, true)
		y := r.say(agent("bot"), "tools/call", `{"name":"await_approval","arguments":{"id":"`+q.Code+`"}}`)
		y.contains(t, `"text":"done"`)
	})
}

func TestDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		x, _ := r.start(agent("bot"), "tools/call", `{"name":"write","arguments":{}}`)
		synctest.Wait()
		r.decide(r.pending(), false)
		<-x.done
		x.contains(t, "TOOL_DENIED", "because", `"isError":true`, `"status":"denied"`)
		r.say(agent("bot"), "tools/call", `{"name":"write","arguments":{}}`).contains(t, "TOOL_DENIED", "denied before")
		r.say(agent("bot"), "tools/call", `{"name":"wipe"}`).contains(t, "Policy denied fs.wipe")
		if got := s.sent("tools/call"); got != nil {
			t.Errorf("the server got %q", got)
		}
	})
}
