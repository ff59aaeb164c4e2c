package desk_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
)

// A person who looks on after approving sees the outcome, not the instant before,
// and does not count as somebody who waits for the call.
func TestOutcomeForAnOnlooker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, rules)
		tk := f.submit(t, ask(t, "fs", "write_file", `{"path":"a"}`))
		f.approve(t, ana, tk.Request)
		seen := make(chan *approval.Request, 1)
		go func() {
			r, err := f.Outcome(t.Context(), ana, tk.Request.ID)
			if err != nil {
				t.Error(err)
			}
			seen <- r
		}()
		time.Sleep(time.Second)
		if n := f.Waiting(tk.Request.ID); n != 0 {
			t.Errorf("an onlooker counts as %d waiting agents", n)
		}
		if _, _, err := f.Execute(t.Context(), bot, &desk.Ticket{Request: tk.Request}, f.do); err != nil {
			t.Error(err)
		}
		if r := <-seen; r.State != approval.Executed {
			t.Errorf("saw %s", r.State)
		}
	})
}
