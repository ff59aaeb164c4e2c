package api

import "fmt"

// Problem is an error answer (RFC 9457, application/problem+json). Code is what
// programs branch on; Detail is a sentence for people that says what happened,
// whether anything ran, and what to do next.
type Problem struct {
	// Always "about:blank": the code says which problem it is.
	Type string `json:"type"`
	// The HTTP status in words.
	Title string `json:"title"`
	// The HTTP status.
	Status int `json:"status"`
	// A sentence for people.
	Detail string `json:"detail"`
	// The stable name of the problem.
	Code Code `json:"code"`
	// Names one internal failure in the server's log.
	Incident string `json:"incident,omitempty"`
	// The call, when an agent's call was refused or ended without a result.
	Call *Call `json:"call,omitempty"`
	// The request as it stands now, when a decision did not fit it.
	Request *Request `json:"request,omitempty"`
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return fmt.Sprintf("ayegate: %s (HTTP %d)", p.Code, p.Status)
	}
	return fmt.Sprintf("ayegate: %s: %s", p.Code, p.Detail)
}

// Is makes errors.Is(err, api.Stale) ask for a code.
func (p *Problem) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == p.Code
}

// Error makes a code usable with errors.Is.
func (c Code) Error() string { return string(c) }
