package ledger

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"
)

// testOrigin names the log of the tests and of the published vectors.
const testOrigin = "ayegate.example/test-log"

// Published test keys: they sign the vectors in docs/vectors/ledger and nothing else.
var (
	testKey   = keyFrom("key 1 of the tests of ayegate only")
	secondKey = keyFrom("key 2 of the tests of ayegate only")
	thirdKey  = keyFrom("key 3 of the tests of ayegate only")
)

// keyFrom makes a key whose seed is the first 32 bytes of a text.
func keyFrom(seed string) *Signer {
	k, err := NewKey(testOrigin, strings.NewReader(seed))
	if err != nil {
		panic(err)
	}
	return k
}

var epochTime = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// testLog is a log in memory, as a store keeps one.
type testLog struct {
	lines  [][]byte
	hashes []Hash
	tree   Frontier
}

func (l *testLog) add(tb testing.TB, events ...Event) *testLog {
	tb.Helper()
	for _, e := range events {
		at := epochTime.Add(time.Duration(len(l.lines)) * 1500 * time.Millisecond)
		line, err := e.Entry(int64(len(l.lines)), at)
		if err != nil {
			tb.Fatal(err)
		}
		l.addLine(line)
	}
	return l
}

func (l *testLog) addLine(line []byte) {
	l.lines = append(l.lines, line)
	l.hashes = l.tree.AppendTo(l.hashes, line)
}

func (l *testLog) ReadHashes(positions []int64) ([]Hash, error) {
	out := make([]Hash, len(positions))
	for i, p := range positions {
		if p >= int64(len(l.hashes)) {
			return nil, fmt.Errorf("no hash at %d", p)
		}
		out[i] = l.hashes[p]
	}
	return out, nil
}

func (l *testLog) entries() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, line := range l.lines {
			if !yield(line, nil) {
				return
			}
		}
	}
}

func (l *testLog) head(tb testing.TB, size int) Head {
	tb.Helper()
	f, err := NewFrontier(int64(size), l)
	if err != nil {
		tb.Fatal(err)
	}
	return f.Head()
}

// sign returns a checkpoint over the first size entries.
func (l *testLog) sign(tb testing.TB, size int, by ...*Signer) []byte {
	tb.Helper()
	if len(by) == 0 {
		by = []*Signer{testKey}
	}
	c, err := SignHead(l.head(tb, size), epochTime.Add(time.Hour), by...)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func (l *testLog) export(tb testing.TB, checkpoints ...[]byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := WriteExport(&b, l.entries(), checkpoints...); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func (l *testLog) exportLeaves(tb testing.TB, checkpoints ...[]byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := WriteExportLeaves(&b, l.entries(), l, checkpoints...); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// The words of the tests: events of request "r1" unless said otherwise.

var (
	testSalt = []byte("0123456789abcdef")
	ana      = Actor{Human, "user:ana", "session"}
	raj      = Actor{Human, "user:raj", "passkey"}
	bot      = Actor{Agent, "release-bot", "key"}
	gate     = Actor{System, "ayegate", ""}
)

func commitment(what string) string {
	var v [32]byte
	copy(v[:], what)
	return Commit(testSalt, v)
}

type set map[string]any

// event makes an event of r1; nil in more deletes a field.
func event(k Kind, by Actor, base, more set) Event {
	e := Event{Kind: k, Subject: "r1", Actor: by}
	for name, v := range base {
		if m, ok := more[name]; ok {
			v = m
		}
		if v != nil {
			e.Data = append(e.Data, Field{name, v})
		}
	}
	for name, v := range more {
		if _, ok := base[name]; !ok {
			e.Data = append(e.Data, Field{name, v})
		}
	}
	return e
}

func first(more []set) set {
	if len(more) == 0 {
		return nil
	}
	return more[0]
}

func judged() set {
	return set{
		FieldCall: commitment("call"), FieldDigest: commitment("digest"), FieldEffect: EffectAsk, FieldTier: "R3", FieldRule: "refund",
		FieldPolicy: "sha256:" + strings.Repeat("ab", 32), FieldAgent: "release-bot", FieldOwner: "user:ana", FieldServer: "payments", FieldTool: "refund",
	}
}

func asked(more ...set) Event { return event(RequestAsked, bot, judged(), first(more)) }

func decided(by Actor, word string, more ...set) Event {
	return event(RequestDecided, by, set{FieldDecision: word, FieldCall: commitment("call"), FieldDigest: commitment("digest")}, first(more))
}

func amended(by Actor, more ...set) Event {
	base := judged()
	base[FieldWas], base[FieldCall], base[FieldDigest] = commitment("call"), commitment("call 2"), commitment("digest 2")
	return event(RequestAmended, by, base, first(more))
}

func rejudged(more ...set) Event {
	base := judged()
	base[FieldDigest] = commitment("digest 2")
	return event(RequestRejudged, gate, base, first(more))
}

func claimed(more ...set) Event {
	return event(RequestClaimed, bot, set{
		FieldClaim: "c1", FieldCall: commitment("call"), FieldDigest: commitment("digest"), FieldExecutor: ExecutorGateway,
	}, first(more))
}

func redeemed(more ...set) Event {
	return event(RequestRedeemed, bot, set{FieldClaim: "c1", FieldCall: commitment("call")}, first(more))
}

func finished(more ...set) Event {
	return event(RequestFinished, bot, set{FieldClaim: "c1", FieldOutcome: Executed, FieldResult: commitment("result")}, first(more))
}

func lost(more ...set) Event { return event(RequestLost, gate, set{FieldClaim: "c1"}, first(more)) }

func resolved(by Actor, more ...set) Event {
	return event(RequestResolved, by, set{FieldOutcome: Executed}, first(more))
}

func simple(k Kind) Event { return event(k, gate, nil, nil) }

func of(id string, events ...Event) []Event {
	for i := range events {
		events[i].Subject = id
	}
	return events
}

// aDay is a log with every way a request can go.
func aDay(tb testing.TB) *testLog {
	tb.Helper()
	l := new(testLog)
	l.add(tb, Event{StoreOpened, "sqlite:ayegate.db", gate, []Field{Int(FieldEpoch, 1), String("version", "v1.0.0")}})
	l.add(tb, Event{PolicyLoaded, "policy.yaml", gate, []Field{String(FieldPolicy, "sha256:ab")}})
	l.add(tb, of("r-approved", asked(), decided(raj, Approve, set{FieldReason: "looked at it"}), claimed(), finished(), simple(ResultPickedUp))...)
	l.add(tb, of("r-denied", asked(), decided(ana, Deny))...)
	l.add(tb, of("r-allowed", asked(set{FieldEffect: EffectAllow}), claimed(), lost(), resolved(raj))...)
	l.add(tb, Event{KeyAdded, "k1", ana, []Field{String("class", "agent"), Strings("groups", []string{"a", "b"}), Bool("first", true)}})
	l.add(tb, of("r-waits", asked())...)
	return l
}

func verify(tb testing.TB, export []byte, opt VerifyOptions) (Report, error) {
	tb.Helper()
	return Verify(bytes.NewReader(export), opt)
}

func findings(r Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

func b64(h Hash) string { return base64.StdEncoding.EncodeToString(h[:]) }
