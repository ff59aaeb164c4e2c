package ledger

import (
	"fmt"
)

// stories follows every request through the record and says when an event does
// not fit what went before (AUD-07), or breaks one of the equalities that an
// approval is worth nothing without.
type stories struct {
	epoch int64             // how often everything open was voided
	byID  map[string]*story // nil for what ended: the memory needed is ids and what is open
}

// story is one request as far as the record has told it.
type story struct {
	state        phase
	epoch        int64 // in which it was asked
	call, digest string
	effect       string
	owner        string
	notRequester bool
	quorum       int64
	approvals    []string // distinct people
	claim        string
	byCaller     bool // the asker executes and redeems a token
	redeemed     bool
}

// phase is where a story stands. The zero value is no story.
type phase string

const (
	pending   phase = "pending"
	approved  phase = "approved"
	executing phase = "executing"
	unknown   phase = "unknown"
	ended     phase = "ended"
)

// facts are the fields of one event that a story looks at.
type facts struct {
	call, digest, was, effect, owner, decision, claim, executor, outcome, grant string
	quorum                                                                      int64
	hasQuorum, hasNotRequester, notRequester                                    bool
}

func factsOf(data Raw) facts {
	var f facts
	texts := func(name []byte) *string {
		switch string(name) {
		case `"call"`:
			return &f.call
		case `"digest"`:
			return &f.digest
		case `"was"`:
			return &f.was
		case `"effect"`:
			return &f.effect
		case `"owner"`:
			return &f.owner
		case `"decision"`:
			return &f.decision
		case `"claim"`:
			return &f.claim
		case `"executor"`:
			return &f.executor
		case `"outcome"`:
			return &f.outcome
		case `"grant"`:
			return &f.grant
		}
		return nil
	}
	for c := (cursor{rest: data}); ; {
		name, value, ok := c.member()
		if !ok {
			return f
		}
		if to := texts(name); to != nil {
			*to, _ = textOf(value)
			continue
		}
		switch string(name) {
		case `"quorum"`:
			v := cursor{rest: value}
			f.quorum, f.hasQuorum = v.integer(), true
		case `"not_requester"`:
			f.notRequester, f.hasNotRequester = string(value) == "true", true
		}
	}
}

// tell takes the next event of the record and returns what is wrong with it, or
// "". The story goes on after a wrong event as far as it can, but a wrong approval
// does not count.
func (s *stories) tell(e Entry) string {
	if e.Kind == EpochBumped {
		s.epoch++
		return ""
	}
	if !e.Kind.ofRequest() || !e.Kind.Known() {
		return ""
	}
	r, told := s.byID[e.Subject]
	switch {
	case !told && e.Kind != RequestAsked && e.Kind != RequestDenied:
		return fmt.Sprintf("%s of a request that was never asked", e.Kind)
	case told && e.Kind == RequestAsked:
		return "the request was asked before"
	case !told:
		r = &story{epoch: s.epoch}
	case r == nil:
		r = &story{state: ended}
	}
	wrong := r.move(e, factsOf(e.Data), s.epoch)
	if r.state == ended {
		r = nil
	}
	if s.byID == nil {
		s.byID = make(map[string]*story)
	}
	s.byID[e.Subject] = r
	return wrong
}

// open counts the requests that did not end, and those of unknown outcome.
func (s *stories) open() (waiting, inDoubt int64) {
	for _, r := range s.byID {
		switch {
		case r == nil:
		case r.state == unknown:
			inDoubt++
		default:
			waiting++
		}
	}
	return waiting, inDoubt
}
