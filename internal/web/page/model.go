package page

import (
	"fmt"
	"time"

	"github.com/ayegate/ayegate/api"
)

// Frame is what every page has around it.
type Frame struct {
	Title   string
	Here    string // which link of the header is this page: "inbox", "tools"
	Waiting int    // requests that this person can decide
	Held    int    // tools whose definition changed
	Person  string // empty: nobody is signed in
	Form    string // what every form must carry
	Paused  bool   // all agents are paused
	Now     time.Time
}

// Inbox is the list of what waits.
type Inbox struct {
	Frame
	Mine, Others, Running, Doubt, Recent []Row
	Sessions                             []string // paused ones, "agent/session"
	More                                 string   // address of the next page; empty when there is none
	Last                                 time.Time
}

// Row is a request in a list.
type Row struct {
	R       api.Request
	Preview []Piece
	Short   bool // the preview leaves something out
	Note    string
}

// Left is the time to a row's deadline.
func (r Row) Left(now time.Time) string { return left(r.R.ExpiresAt, now) }

// Soon reports whether less than a minute is left.
func (r Row) Soon(now time.Time) bool { return soon(r.R.ExpiresAt, now) }

// May is what the person who looks can do.
type May struct {
	Approve, Deny, Extend, Revoke, Resolve bool
	WhyNot                                 string // why they cannot approve, while the request waits
}

// Draft is what a person wrote into a form that was refused.
type Draft struct{ Reason, Preset, Typed, Note string }

// Request is the page of one request.
type Request struct {
	Frame
	R      api.Request
	Call   Exact
	Result []Piece // what the tool answered, as far as it is shown
	Cut    int     // bytes of the result that are not shown
	May    May
	Notice string // why the last form was refused
	Draft  Draft
	Head   Head
	Trail  []Step
	// Outdated says that the policy changed after the request was judged.
	Outdated bool
}

// Tools is the list of pinned tools.
type Tools struct {
	Frame
	Held   []HeldTool
	Known  []api.Definition
	Notice string
}

// HeldTool is a tool whose definition changed.
type HeldTool struct {
	Server, Tool, Definition, Was string
	Before, After                 []DiffLine
}

// DiffLine is a line of a definition, and whether the other side lacks it.
type DiffLine struct {
	Text    []Piece
	Changed bool
}

// SignIn is the page that starts a session.
type SignIn struct {
	Frame
	Secret string // of the link that was opened; empty: it is asked for
	Next   string
	Notice string
}

// Failure is a page that could not be shown.
type Failure struct {
	Frame
	Status   int
	Heading  string
	Detail   string
	Incident string
}

// NewRequest makes the page of a request.
func NewRequest(f Frame, r api.Request, call Exact, may May) Request {
	p := Request{Frame: f, R: r, Call: call, May: may}
	p.Head = headOf(r, may, f.Now)
	p.Trail = trail(r)
	if e := r.Execution; e != nil {
		p.Result = Pieces(e.Result)
		if e.Outcome == api.Succeeded || e.Outcome == api.Errored {
			p.Cut = max(0, e.Size-len(e.Result))
		}
	}
	return p
}

// Action is the address of one of the page's forms.
func (p Request) Action(verb string) string { return "/r/" + p.R.ApprovalID + "/" + verb }

// Open reports whether somebody can still decide.
func (p Request) Open() bool {
	return p.R.Status == api.StatusPending && p.Now.Before(p.R.ExpiresAt)
}

// HasOutcome reports whether there is more to an end than its sentence: a
// result, or something left to do.
func (p Request) HasOutcome() bool {
	e := p.R.Execution
	return e != nil && (e.Error != "" || e.Size > 0) ||
		p.R.Status == api.StatusApproved && p.May.Revoke || p.R.Status == api.StatusUnknown && p.May.Resolve
}

// Deliberate reports whether an approval must say that the call was read to its
// end.
func (p Request) Deliberate() bool { return p.R.RiskTier == "R3" || p.R.RiskTier == "R4" }

// Lines says how much of the call there is to read.
func (p Request) Lines() string { return plural(p.Call.Lines, "line", "lines") }

// ApproveLabel says what the button does.
func (p Request) ApproveLabel() string {
	switch {
	case p.R.ApprovalsNeeded > 1:
		return fmt.Sprintf("Approve once, %s needed after you", plural(p.R.ApprovalsNeeded-1, "more person", "more people"))
	case p.R.Waiting > 0:
		return "Approve once, runs now"
	}
	return "Approve once, runs when the agent returns"
}

// Presets are the usual reasons to deny.
var Presets = []string{"Wrong target", "Too broad", "Not now", "Use a safer way", "I did not ask for this"}

// TierWord is a tier for people.
func TierWord(tier string) string {
	return map[string]string{"R0": "None", "R1": "Low", "R2": "Medium", "R3": "High", "R4": "Critical"}[tier]
}

// left writes the time to a deadline: "3:10 left".
func left(at, now time.Time) string {
	d := at.Sub(now).Round(time.Second)
	if d <= 0 {
		return "no time left"
	}
	if d >= time.Hour {
		return fmt.Sprintf("%d:%02d h left", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d:%02d left", int(d.Minutes()), int(d.Seconds())%60)
}

func soon(at, now time.Time) bool { return at.Sub(now) < time.Minute }

// clock writes a time of day, with the day where it is another one.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05") + " UTC"
	}
	return t.Format("2 Jan 2006 15:04:05") + " UTC"
}

// ago writes how long something is past.
func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case d < time.Minute:
		return plural(max(1, int(d.Seconds())), "second", "seconds") + " ago"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute", "minutes") + " ago"
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour", "hours") + " ago"
	default:
		return plural(int(d.Hours()/24), "day", "days") + " ago"
	}
}

// took writes a span as people say it.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(1, d.Milliseconds()))
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}

// size writes a number of bytes.
func size(n int) string {
	switch {
	case n < 1<<10:
		return plural(n, "byte", "bytes")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }
