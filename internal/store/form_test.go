package store

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/policy"
)

// full returns a request of which no field is zero, made by reflection, so that a
// field that is added to the domain and not to the stored form fails the tests.
func full(t testing.TB) *approval.Request {
	t.Helper()
	r := &approval.Request{}
	n := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		n++
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1_800_000_000, int64(n)).UTC()))
			return
		}
		if v.Type() == reflect.TypeFor[call.Call]() {
			return
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fallthrough
		case reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case reflect.String:
			v.SetString("text\xff\x00<&>" + string(rune('a'+n%26)) + strings.Repeat("x", n%300))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(n) << 33)
		case reflect.Uint8:
			v.SetUint(uint64(n%250 + 1))
		default:
			t.Fatalf("the stored form does not know %s", v.Type())
		}
	}
	fill(reflect.ValueOf(r).Elem())
	r.Extra = []byte(`{"_meta":{"to":"\u0000<&>"},"dry":true}`)
	// What is in closed lists.
	r.State, r.Cause, r.Executor, r.Execution.Outcome = approval.Executed, approval.ByPerson, approval.Caller, approval.Succeeded
	r.Verdict.Effect, r.Verdict.Tier, r.Verdict.Confirm = policy.Ask, policy.R3, []policy.Confirm{policy.Typed}
	for i := range r.Decisions {
		r.Decisions[i].By.Strength = identity.Passkey
	}
	c, err := call.New("shop", "refund", []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Call = c
	return r
}

// diff compares requests; nil and empty lists are the same.
func diff(a, b *approval.Request) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b call.Call) bool { return a == b }))
}

func TestFormKeepsEveryField(t *testing.T) {
	r := full(t)
	got, err := Form(r).Request()
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(r, got); d != "" {
		t.Fatalf("(-stored +read)\n%s", d)
	}
	// Every field makes a difference in the form: none is stored as another.
	sparse := &approval.Request{ID: "x", State: approval.Pending, AskedAt: r.AskedAt, ExpiresAt: r.ExpiresAt}
	if got, err = Form(sparse).Request(); err != nil || diff(sparse, got) != "" {
		t.Fatalf("%v\n%s", err, diff(sparse, got))
	}
}

// A form of the first version has nothing beside its call, and is written anew in
// the newest. OPS-06
func TestFormOfTheFirstVersion(t *testing.T) {
	r := full(t)
	r.Extra = nil
	s := Form(r)
	newest := slices.Clone(s.Form)
	s.Form = append([]byte{1}, newest[1:len(newest)-1]...) // without the empty extras
	got, err := s.Request()
	if err != nil || got.Extra != nil || diff(r, got) != "" {
		t.Fatalf("%v %q\n%s", err, got.Extra, diff(r, got))
	}
	if !bytes.Equal(Form(got).Form, newest) {
		t.Fatal("it is not written in the newest form")
	}
	s.Form[0] = 0
	if _, err := s.Request(); !errors.Is(err, ErrForm) {
		t.Fatalf("version 0: %v", err)
	}
}

// What is sent beside a call comes back byte for byte or not at all, and no move
// replaces it. TOK-04, RACE-05
func TestFormKeepsExtras(t *testing.T) {
	r := full(t)
	got, err := Form(r).Request()
	if err != nil || !bytes.Equal(got.Extra, r.Extra) {
		t.Fatalf("%v %q", err, got.Extra)
	}
	for _, damaged := range []string{`{"dry": true}`, `{"b":1,"a":1}`, `[]`, `{"a":1,"a":2}`, `x`} {
		bad := Copy(r)
		bad.Extra = []byte(damaged)
		if _, err := Form(bad).Request(); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", damaged, err)
		}
		if err := SameRequest(r, bad); !errors.Is(err, ErrForm) {
			t.Errorf("a move made them %s: %v", damaged, err)
		}
	}
	none := Copy(r)
	none.Extra = nil
	if SameRequest(r, none) != nil || SameRequest(none, r) == nil || SameRequest(r, r) != nil {
		t.Error("extras may be erased, and never given later")
	}
}

func TestCopySharesNothing(t *testing.T) {
	r := full(t)
	want, c := Form(r), Copy(r)
	if d := diff(r, c); d != "" {
		t.Fatal(d)
	}
	var scribble func(v reflect.Value)
	scribble = func(v reflect.Value) {
		switch {
		case v.Type() == reflect.TypeFor[time.Time](), v.Type() == reflect.TypeFor[call.Call]():
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				scribble(v.Field(i))
			}
		case v.Kind() == reflect.Slice:
			for i := range v.Len() {
				scribble(v.Index(i))
				v.Index(i).SetZero()
			}
		}
	}
	scribble(reflect.ValueOf(c).Elem())
	if d := cmp.Diff(want, Form(r)); d != "" {
		t.Fatalf("writing to a copy changed the original:\n%s", d)
	}
}

// TestFormRefusesWhatItDoesNotKnow is OPS-06: a form of a newer version, a value
// in no list and damaged bytes are no request, least of all an approved one.
func TestFormRefusesWhatItDoesNotKnow(t *testing.T) {
	good := Form(full(t))
	damage := map[string]func(s *Stored){
		"newer version": func(s *Stored) { s.Form[0]++ },
		"no form":       func(s *Stored) { s.Form = nil },
		"cut":           func(s *Stored) { s.Form = s.Form[:len(s.Form)-1] },
		"longer":        func(s *Stored) { s.Form = append(s.Form, 0) },
		"other state":   func(s *Stored) { s.Form = bytes.Replace(s.Form, []byte("executed"), []byte("exploded"), 1) },
		"open and over": func(s *Stored) { s.Form = bytes.Replace(s.Form, []byte("\x08executed"), []byte("\x08approved"), 1) },
		"other call": func(s *Stored) {
			c, err := call.New("shop", "refund", []byte(`{"a":2}`))
			if err != nil {
				t.Fatal(err)
			}
			s.Call = c.Canonical()
		},
		"call in another spelling": func(s *Stored) { s.Call = append([]byte(" "), s.Call...) },
		"no call":                  func(s *Stored) { s.Call = nil },
	}
	for name, do := range damage {
		s := Stored{Form: slices.Clone(good.Form), Call: slices.Clone(good.Call), Salt: good.Salt, Result: good.Result}
		do(&s)
		if _, err := s.Request(); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for cut := range good.Form {
		if _, err := (Stored{Form: good.Form[:cut], Call: good.Call}).Request(); !errors.Is(err, ErrForm) {
			t.Fatalf("cut to %d bytes: %v", cut, err)
		}
	}
}

func FuzzForm(f *testing.F) {
	f.Add(Form(full(f)).Form)
	f.Add([]byte{formVersion})
	f.Fuzz(func(t *testing.T, form []byte) {
		s := Stored{Form: form, Call: Form(full(t)).Call}
		r, err := s.Request()
		if err != nil {
			if !errors.Is(err, ErrForm) {
				t.Fatal(err)
			}
			return
		}
		again, err := Form(r).Request()
		if err != nil || diff(r, again) != "" {
			t.Fatalf("%v\n%s", err, diff(r, again))
		}
	})
}

func BenchmarkForm(b *testing.B) {
	r := full(b)
	r.Decisions = r.Decisions[:1]
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Form(r)
		}
	})
	s := Form(r)
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Request(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestClock holds that the clock never goes back, keeps the wall's time, and
// reaches deadlines while the wall is behind. RACE-22
func TestClock(t *testing.T) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	wall := start
	c := NewClock(func() time.Time { return wall }, start.Add(-time.Hour))
	if got := c.Now(); !got.Equal(start) {
		t.Fatalf("it shows %v", got)
	}
	wall = start.Add(-time.Hour)
	if got := c.Now(); !got.Equal(start) {
		t.Fatalf("set back, it shows %v", got)
	}
	wall = wall.Add(time.Minute)
	if got := c.Now(); !got.Equal(start.Add(30 * time.Second)) {
		t.Fatalf("a minute later it shows %v", got)
	}
	for range 200 {
		before := c.Now()
		wall = wall.Add(time.Minute)
		if c.Now().Before(before) {
			t.Fatal("it went back")
		}
	}
	if got := c.Now(); !got.Equal(wall) {
		t.Fatalf("the wall caught up at %v, it shows %v", wall, got)
	}
	// A restart continues from what was committed.
	c = NewClock(func() time.Time { return wall }, wall.Add(time.Hour))
	if got := c.Now(); got.Before(wall.Add(time.Hour)) {
		t.Fatalf("it forgot: %v", got)
	}
	// Times of other zones and with a monotonic reading come out in one form.
	c = NewClock(time.Now, time.Time{})
	if got := c.Now(); got.Location() != time.UTC || got != got.Round(0) {
		t.Fatalf("%v", got)
	}
}
