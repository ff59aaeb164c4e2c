package web

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// metrics counts what the record tells, from the start of the program on. All
// ways in end in the record, so nothing is counted at any of them.
type metrics struct {
	mu       sync.Mutex
	requests map[[3]string]int64 // decision, tier, source
	expired  int64
	repeats  int64
	decided  map[string]*histogram // by tier
	open     map[string]asked      // by request: those that wait for people
}

type asked struct {
	at   time.Time
	tier string
}

// maxFollowed bounds what is remembered of waiting requests: beyond, a decision
// is counted without the time it took.
const maxFollowed = 10_000

// follow reads the record until ctx ends.
func (m *metrics) follow(ctx context.Context, s store.Ledger) error {
	h, err := s.Head(ctx)
	if err != nil {
		return err
	}
	for text, err := range s.Follow(ctx, h.Size) {
		if err != nil {
			return err
		}
		e, err := ledger.ParseEntry(text)
		if err != nil {
			return err
		}
		m.note(e)
	}
	return nil
}

func (m *metrics) note(e ledger.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tier, _ := e.Text(ledger.FieldTier)
	switch e.Kind {
	case ledger.RequestAsked:
		m.asked(e, tier)
	case ledger.RequestDenied:
		if was, ok := m.open[e.Subject]; ok && tier == "" {
			tier = was.tier
		}
		m.count("deny", tier, "policy")
		delete(m.open, e.Subject)
	case ledger.RequestDecided:
		m.decision(e)
	case ledger.RequestExpired:
		m.expired++
		delete(m.open, e.Subject)
	case ledger.RequestCancelled:
		delete(m.open, e.Subject)
	case ledger.CallRepeated:
		m.repeats++
	default: // of no count
	}
}

func (m *metrics) asked(e ledger.Entry, tier string) {
	switch effect, _ := e.Text(ledger.FieldEffect); effect {
	case ledger.EffectAllow:
		m.count("allow", tier, "rule")
	case ledger.EffectAsk:
		m.count("ask", tier, "policy")
		if m.open == nil {
			m.open = make(map[string]asked)
		}
		if len(m.open) < maxFollowed {
			m.open[e.Subject] = asked{e.Time, tier}
		}
	}
}

func (m *metrics) decision(e ledger.Entry) {
	word, _ := e.Text(ledger.FieldDecision)
	was, ok := m.open[e.Subject]
	m.count(word, was.tier, "person")
	if state, _ := e.Text("state"); state == "pending" {
		return // another person is needed
	}
	if ok {
		if m.decided == nil {
			m.decided = make(map[string]*histogram)
		}
		if m.decided[was.tier] == nil {
			m.decided[was.tier] = &histogram{}
		}
		m.decided[was.tier].add(e.Time.Sub(was.at).Seconds())
		delete(m.open, e.Subject)
	}
}

func (m *metrics) count(decision, tier, source string) {
	if m.requests == nil {
		m.requests = make(map[[3]string]int64)
	}
	m.requests[[3]string{decision, tier, source}]++
}

// bounds of a decision's time, in seconds.
var bounds = [...]float64{1.5, 5, 15, 60, 300, 900, 3600}

type histogram struct {
	in    [len(bounds)]int64 // cumulative
	count int64
	sum   float64
}

func (h *histogram) add(v float64) {
	for i, b := range bounds {
		if v <= b {
			h.in[i]++
		}
	}
	h.count++
	h.sum += v
}

// write appends what was counted in the text format of Prometheus (0.0.4). No
// label holds anything that an agent wrote (OPS-07).
func (m *metrics) write(b *strings.Builder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	family(b, "ayegate_requests_total", "counter", "Requests by what was said of them, by tier and by who said it.")
	keys := make([][3]string, 0, len(m.requests))
	for k := range m.requests {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		fmt.Fprintf(b, "ayegate_requests_total{decision=%q,tier=%q,source=%q} %d\n", k[0], k[1], k[2], m.requests[k])
	}
	family(b, "ayegate_expired_total", "counter", "Requests whose deadline passed.")
	fmt.Fprintf(b, "ayegate_expired_total %d\n", m.expired)
	family(b, "ayegate_repeat_denials_total", "counter", "Calls refused because a person had denied the same call.")
	fmt.Fprintf(b, "ayegate_repeat_denials_total %d\n", m.repeats)
	family(b, "ayegate_decision_seconds", "histogram", "From asking to the last word of a person.")
	tiers := make([]string, 0, len(m.decided))
	for t := range m.decided {
		tiers = append(tiers, t)
	}
	slices.Sort(tiers)
	for _, t := range tiers {
		h := m.decided[t]
		for i, le := range bounds {
			fmt.Fprintf(b, "ayegate_decision_seconds_bucket{tier=%q,le=\"%g\"} %d\n", t, le, h.in[i])
		}
		fmt.Fprintf(b, "ayegate_decision_seconds_bucket{tier=%q,le=\"+Inf\"} %d\n", t, h.count)
		fmt.Fprintf(b, "ayegate_decision_seconds_sum{tier=%q} %g\nayegate_decision_seconds_count{tier=%q} %d\n", t, h.sum, t, h.count)
	}
}

func family(b *strings.Builder, name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}
