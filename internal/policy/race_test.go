package policy

import (
	"sync"
	"testing"
)

// A policy never changes, so any number of calls may be judged at once.
func TestJudgeConcurrently(t *testing.T) {
	p := example(t)
	calls := map[string]string{
		"shell.run": `{"command":"git status"}`, "fs.read_file": `{"path":"src/main.go"}`, "payments.refund": `{"amount_usd":900}`, "postgres.query": `{"sql":"drop table x"}`,
	}
	var group sync.WaitGroup
	for name, args := range calls {
		c := mustCall(t, name, args)
		want := of(p.Judge(c, known))
		for range 4 {
			group.Go(func() {
				for range 200 {
					if got := of(p.Judge(c, known)); got != want {
						t.Errorf("%s: %+v, want %+v", name, got, want)
						return
					}
					p.Charges(c, known)
				}
			})
		}
	}
	group.Wait()
}
