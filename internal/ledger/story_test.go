package ledger

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// want "" means that the story is one that ayegate's rules allow.
type storyTest struct {
	name   string
	events []Event
	want   string
}

func (tt storyTest) run(t *testing.T) {
	t.Helper()
	l := new(testLog).add(t, tt.events...)
	r, err := verify(t, l.export(t), VerifyOptions{})
	switch {
	case tt.want == "" && err != nil:
		t.Errorf("%v\n%s", err, findings(r))
	case tt.want != "" && (!errors.Is(err, ErrFaulty) || !strings.Contains(findings(r), tt.want)):
		t.Errorf("want %q, got %v\n%s", tt.want, err, findings(r))
	case tt.want != "" && r.FirstBad.Seq < 0:
		t.Errorf("the entry is not named: %v", r.FirstBad)
	}
}

var (
	twoNeeded = set{FieldQuorum: int64(2)}
	allowed   = set{FieldEffect: EffectAllow}
	byCaller  = set{FieldExecutor: ExecutorCaller}
	call2     = set{FieldCall: commitment("call 2"), FieldDigest: commitment("digest 2")}
	digest2   = set{FieldDigest: commitment("digest 2")}
	voided    = Event{EpochBumped, "sqlite:ayegate.db", gate, []Field{Int(FieldEpoch, 2)}}
)

func TestStoriesThatTheRulesAllow(t *testing.T) {
	for _, tt := range []storyTest{
		{name: "approved and run", events: []Event{asked(), simple(RequestAttached), decided(raj, Approve), claimed(), finished(), simple(ResultPickedUp), simple(ResultReplayed)}},
		{name: "denied, and asked again", events: []Event{asked(), decided(raj, Deny), simple(CallRepeated)}},
		{name: "failed", events: []Event{asked(), decided(raj, Approve), claimed(), finished(set{FieldOutcome: Failed})}},
		{name: "the owner approves where the policy does not bar them", events: []Event{asked(), decided(ana, Approve), claimed()}},
		{name: "barred, and somebody else approves", events: []Event{asked(set{FieldNotRequester: true}), decided(raj, Approve), claimed()}},
		{name: "barred, and the owner denies", events: []Event{asked(set{FieldNotRequester: true}), decided(ana, Deny)}},
		{name: "two people", events: []Event{asked(twoNeeded), decided(ana, Approve), decided(raj, Approve), claimed(), finished()}},
		{name: "allowed by a rule", events: []Event{asked(allowed), claimed(), finished()}},
		{name: "covered by a grant", events: []Event{asked(set{FieldEffect: EffectGrant, FieldGrant: "g1"}), claimed(), finished()}},
		{name: "denied at once", events: []Event{event(RequestDenied, bot, judged(), set{FieldEffect: EffectDeny})}},
		{name: "asked and denied in one", events: []Event{asked(set{FieldEffect: EffectDeny})}},
		{name: "denied when the policy changed", events: []Event{asked(), decided(raj, Approve), simple(RequestDenied)}},
		{name: "expired", events: []Event{asked(), simple(RequestExtended), simple(RequestDryRun), simple(RequestExpired)}},
		{name: "cancelled after the approval", events: []Event{asked(), decided(raj, Approve), simple(RequestCancelled)}},
		{name: "a caller redeems", events: []Event{asked(allowed), claimed(byCaller), redeemed(), finished()}},
		{name: "a caller never redeems", events: []Event{asked(allowed), claimed(byCaller), simple(RequestExpired)}},
		{name: "lost and resolved", events: []Event{asked(allowed), claimed(), lost(), resolved(raj)}},
		{name: "lost, and the answer came after all", events: []Event{asked(allowed), claimed(), lost(), finished()}},
		{name: "amended", events: []Event{asked(), decided(raj, Approve), amended(raj), decided(ana, Approve, call2), claimed(call2), finished()}},
		{name: "judged anew", events: []Event{asked(twoNeeded), decided(raj, Approve), rejudged(twoNeeded), decided(raj, Approve, digest2), decided(ana, Approve, digest2), claimed(digest2)}},
		{name: "asked after everything was voided", events: []Event{voided, asked(allowed), claimed()}},
		{name: "running when everything was voided", events: []Event{asked(allowed), claimed(), voided, finished()}},
		{name: "two requests beside each other", events: slices.Concat(of("a", asked(), decided(raj, Approve)), of("b", asked(), decided(raj, Approve), claimed()), of("a", claimed(), finished()), of("b", finished()))},
	} {
		t.Run(tt.name, tt.run)
	}
}

// AUD-07: what was left out of a story, or put into it, shows.
func TestAUD07StoriesWithGaps(t *testing.T) {
	whole := []Event{asked(), decided(raj, Approve), claimed(), finished()}
	for i := range whole[:3] {
		storyTest{"gap", slices.Delete(slices.Clone(whole), i, i+1), "entry"}.run(t)
	}
	for _, tt := range []storyTest{
		{"asked twice", []Event{asked(), asked()}, "asked before"},
		{"asked again after the end", []Event{asked(), decided(raj, Deny), asked()}, "asked before"},
		{"decided, never asked", []Event{decided(raj, Approve)}, "request.decided of a request that was never asked"},
		{"claimed, never asked", []Event{claimed()}, "never asked"},
		{"decided after the denial", []Event{asked(), decided(raj, Deny), decided(ana, Approve)}, "request.decided while the request is ended"},
		{"decided after the deadline", []Event{asked(), simple(RequestExpired), decided(ana, Approve)}, "request.decided while the request is ended"},
		{"decided after the claim", []Event{asked(), decided(raj, Approve), claimed(), decided(ana, Approve)}, "request.decided while the request is executing"},
		{"decided after the approval", []Event{asked(), decided(raj, Approve), decided(ana, Approve)}, "request.decided while the request is approved"},
		{"claimed without a decision", []Event{asked(), claimed()}, "claimed with 0 of 1 approvals"},
		{"claimed with one of two", []Event{asked(twoNeeded), decided(raj, Approve), claimed()}, "claimed with 1 of 2 approvals"},
		{"one person twice is one", []Event{asked(twoNeeded), decided(raj, Approve), decided(raj, Approve), claimed()}, "claimed with 1 of 2 approvals"},
		{"claimed after the denial (P3)", []Event{asked(), decided(raj, Deny), claimed()}, "request.claimed while the request is ended"},
		{"claimed after the deadline (P3)", []Event{asked(allowed), simple(RequestExpired), claimed()}, "request.claimed while the request is ended"},
		{"claimed after the cancellation (P3)", []Event{asked(allowed), simple(RequestCancelled), claimed()}, "request.claimed while the request is ended"},
		{"claimed after the policy's denial (P3)", []Event{asked(set{FieldEffect: EffectDeny}), claimed()}, "request.claimed while the request is ended"},
		{"claimed twice (P2)", []Event{asked(allowed), claimed(), claimed()}, "request.claimed while the request is executing"},
		{"claimed again after the end (P2)", []Event{asked(allowed), claimed(), finished(), claimed()}, "request.claimed while the request is ended"},
		{"claimed without a claim", []Event{asked(allowed), claimed(set{FieldClaim: nil})}, "without a claim id"},
		{"claimed after everything was voided", []Event{asked(allowed), voided, claimed()}, "claimed after everything open was voided"},
		{"redeemed before the claim", []Event{asked(allowed), redeemed()}, "request.redeemed while the request is approved"},
		{"redeemed twice", []Event{asked(allowed), claimed(byCaller), redeemed(), redeemed()}, "redeemed twice"},
		{"redeemed what the gateway runs", []Event{asked(allowed), claimed(), redeemed()}, "request.redeemed while the request is executing"},
		{"redeemed another claim", []Event{asked(allowed), claimed(byCaller), redeemed(set{FieldClaim: "c2"})}, "redeemed another claim or call"},
		{"redeemed another call", []Event{asked(allowed), claimed(byCaller), redeemed(set{FieldCall: commitment("call 2")})}, "redeemed another claim or call"},
		{"finished without a claim", []Event{asked(allowed), finished()}, "request.finished while the request is approved"},
		{"finished twice", []Event{asked(allowed), claimed(), finished(), finished()}, "request.finished while the request is ended"},
		{"finished another claim", []Event{asked(allowed), claimed(), finished(set{FieldClaim: "c2"})}, "finished another claim"},
		{"finished without redeeming", []Event{asked(allowed), claimed(byCaller), finished()}, "request.finished while the request is claimed but not redeemed"},
		{"finished somehow", []Event{asked(allowed), claimed(), finished(set{FieldOutcome: "perhaps"})}, `an outcome of "perhaps"`},
		{"lost before it began", []Event{asked(allowed), claimed(byCaller), lost()}, "request.lost while the request is claimed but not redeemed"},
		{"lost twice", []Event{asked(allowed), claimed(), lost(), lost()}, "request.lost while the request is unknown"},
		{"lost another claim", []Event{asked(allowed), claimed(), lost(set{FieldClaim: "c2"})}, "lost another claim"},
		{"resolved what was not lost", []Event{asked(allowed), claimed(), resolved(raj)}, "request.resolved while the request is executing"},
		{"resolved somehow", []Event{asked(allowed), claimed(), lost(), resolved(raj, set{FieldOutcome: "perhaps"})}, `an outcome of "perhaps"`},
		{"expired while it ran", []Event{asked(allowed), claimed(), simple(RequestExpired)}, "request.expired while the request is executing"},
		{"cancelled after it was lost", []Event{asked(allowed), claimed(), lost(), simple(RequestCancelled)}, "request.cancelled while the request is unknown"},
		{"denied after the end", []Event{asked(), decided(raj, Deny), simple(RequestDenied)}, "request.denied while the request is ended"},
		{"extended after the end", []Event{asked(), decided(raj, Deny), simple(RequestExtended)}, "request.extended while the request is ended"},
		{"picked up before the end", []Event{asked(), simple(ResultPickedUp)}, "result.picked_up while the request is pending"},
		{"replayed before the end", []Event{asked(allowed), claimed(), simple(ResultReplayed)}, "result.replayed while the request is executing"},
		{"repeated before the end", []Event{asked(), simple(CallRepeated)}, "call.repeated while the request is pending"},
		{"amended after the claim", []Event{asked(allowed), claimed(), amended(raj)}, "request.amended while the request is executing"},
	} {
		t.Run(tt.name, tt.run)
	}
}

// The first of the three equalities, and who may say what.
func TestWhatWasAskedWasDecidedAndWasClaimed(t *testing.T) {
	for _, tt := range []storyTest{
		{"another call was decided", []Event{asked(), decided(raj, Approve, set{FieldCall: commitment("call 2")})}, "decided on another call or digest"},
		{"another digest was decided", []Event{asked(), decided(raj, Approve, digest2)}, "decided on another call or digest"},
		{"another call was claimed", []Event{asked(), decided(raj, Approve), claimed(set{FieldCall: commitment("call 2")})}, "claimed another call or digest"},
		{"another digest was claimed", []Event{asked(), decided(raj, Approve), claimed(digest2)}, "claimed another call or digest"},
		{"no digest was claimed", []Event{asked(), decided(raj, Approve), claimed(set{FieldDigest: nil})}, "claimed another call or digest"},
		{"nothing was asked", []Event{asked(set{FieldCall: nil})}, "asked without a commitment"},
		{"nothing was shown", []Event{asked(set{FieldDigest: nil})}, "asked without a commitment"},
		{"the approval of the original does not count for the amended", []Event{asked(), decided(raj, Approve), amended(raj), claimed(call2)}, "claimed with 0 of 1 approvals"},
		{"the original is claimed after the amendment", []Event{asked(), amended(raj), decided(ana, Approve, call2), claimed()}, "claimed another call or digest"},
		{"amended from another call", []Event{asked(), amended(raj, set{FieldWas: commitment("call 3")})}, "amended from another call"},
		{"amended into nothing", []Event{asked(), amended(raj, set{FieldCall: nil})}, "request.amended without a commitment"},
		{"TOK-10 amended around a denial", []Event{asked(), amended(raj, set{FieldEffect: EffectDeny})}, "into a call that the policy denies"},
		{"P9 amended by an agent", []Event{asked(), amended(bot)}, `amended by the agent "release-bot", who is no human`},
		{"amended to another owner", []Event{asked(), amended(raj, set{FieldOwner: "user:raj"})}, "another owner"},
		{"a new verdict on another call", []Event{asked(), rejudged(set{FieldCall: commitment("call 2")})}, "a new verdict on another call"},
		{"a new verdict loosens", []Event{asked(), rejudged(allowed)}, "allowed what waited for people"},
		{"a verdict of nothing", []Event{asked(set{FieldEffect: "maybe"}), claimed()}, `a verdict of "maybe"`},
		{"a new verdict of nothing", []Event{asked(), rejudged(set{FieldEffect: "maybe"})}, `a verdict of "maybe"`},
		{"nobody is asked", []Event{asked(set{FieldQuorum: int64(0)})}, "asks for the approval of 0 people"},
		{"nobody is asked, and it is claimed", []Event{asked(set{FieldQuorum: int64(-1)}), claimed()}, "claimed with 0 of 1 approvals"},
		{"a grant without a name", []Event{asked(set{FieldEffect: EffectGrant})}, "a grant that is not named"},
		{"P9 decided by an agent", []Event{asked(), decided(bot, Approve), claimed()}, `decided by the agent "release-bot", who is no human`},
		{"P9 decided by the system", []Event{asked(), decided(gate, Approve)}, `decided by the system "ayegate"`},
		{"P9 and it does not count", []Event{asked(), decided(bot, Approve), claimed()}, "claimed with 0 of 1 approvals"},
		{"resolved by an agent", []Event{asked(allowed), claimed(), lost(), resolved(bot)}, "who is no human"},
		{"a word that is none", []Event{asked(), decided(raj, "aye")}, `a decision of "aye"`},
		{"API-02 self-approval", []Event{asked(set{FieldNotRequester: true}), decided(ana, Approve)}, "bars the owner"},
		{"API-02 self-approval under the bare id", []Event{asked(set{FieldNotRequester: true}), decided(Actor{Human, "ana", "token"}, Approve)}, "bars the owner"},
		{"API-02 approval for an agent nobody owns", []Event{asked(set{FieldNotRequester: true, FieldOwner: nil}), decided(ana, Approve)}, "bars the owner"},
		{"API-02 and it does not count", []Event{asked(set{FieldNotRequester: true}), decided(ana, Approve), claimed()}, "claimed with 0 of 1 approvals"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestCountsOfOpenRequests(t *testing.T) {
	l := new(testLog).add(t, slices.Concat(of("a", asked()), of("b", asked(allowed), claimed()), of("c", asked(allowed), claimed(), lost()), of("d", asked(), decided(raj, Deny)))...)
	r, err := verify(t, l.export(t), VerifyOptions{})
	if err != nil || r.Waiting != 2 || r.InDoubt != 1 {
		t.Errorf("%v, %d waiting, %d in doubt", err, r.Waiting, r.InDoubt)
	}
}
