package web

import "testing"

// WEB-11: an id has one spelling, a short code one meaning.
func TestIDGrammar(t *testing.T) {
	const good = "0f8fad5b-d9cb-469f-a165-70867728950e"
	if !uuid(good) {
		t.Errorf("%s is refused", good)
	}
	for _, bad := range []string{
		"", good[:35], good + "0", "0F8FAD5B-D9CB-469F-A165-70867728950E", "0f8fad5bxd9cb-469f-a165-70867728950e",
		"../../../../../../../../etc/passwd00", "0f8fad5b-d9cb-469f-a165-70867728950g", "0f8fad5b-d9cb-469f-a165-7086772895/e",
	} {
		if uuid(bad) {
			t.Errorf("%q is taken for an id", bad)
		}
	}
	for s, want := range map[string]string{
		"K7Q4": "K7Q4", "k7q4": "K7Q4", "oil1": "0111", "K7Q": "", "K7Q4K7Q4K": "", "K7QU": "", "K7 Q": "", "K7Q\u0130": "", "K7/Q": "", "": "",
	} {
		if got := shortCode(s); got != want {
			t.Errorf("%q reads as %q, want %q", s, got, want)
		}
	}
}
