package page

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/ayegate/ayegate/internal/call"
)

// Warning is something in a call that can be taken for something else.
type Warning struct {
	Text  string  // what it is
	Shown []Piece // as it is written
	Means string  // the same in another form, that cannot be mistaken
}

// maxWarnings bounds the list; the call itself is shown whole.
const maxWarnings = 20

// warnings finds words that mix scripts, and hosts that look like others
// (DISP-06).
func warnings(c call.Call, extra []byte) []Warning {
	var out []Warning
	seen := map[string]bool{}
	add := func(w Warning) {
		if key := Text(w.Shown); !seen[key] && len(out) < maxWarnings {
			seen[key] = true
			out = append(out, w)
		}
	}
	texts(c, extra, func(s string) {
		for _, word := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' }) {
			if odd := mixed(word); odd != "" {
				add(Warning{"A word mixes alphabets that look alike.", Pieces(word), odd})
			}
			if strings.HasPrefix(strings.ToLower(word), "xn--") {
				if u, err := idna.ToUnicode(strings.ToLower(word)); err == nil && u != strings.ToLower(word) {
					add(Warning{"A host name is written in code (Punycode).", Pieces(word), u})
				}
			}
		}
		for _, host := range hosts(s) {
			if a, err := idna.ToASCII(host); err == nil && a != strings.ToLower(host) {
				add(Warning{"A host name has letters beyond a to z.", Pieces(host), a})
			}
		}
	})
	return out
}

// mixed lists the Cyrillic and Greek letters of a word that has Latin ones too.
func mixed(word string) string {
	latin := false
	var odd []string
	for _, r := range word {
		switch {
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.Is(unicode.Cyrillic, r):
			odd = append(odd, fmt.Sprintf("%c U+%04X Cyrillic", r, r))
		case unicode.Is(unicode.Greek, r):
			odd = append(odd, fmt.Sprintf("%c U+%04X Greek", r, r))
		}
	}
	if !latin {
		return ""
	}
	return strings.Join(odd, ", ")
}

// hosts are the host names of the addresses in a text.
func hosts(s string) []string {
	var out []string
	for _, word := range strings.Fields(s) {
		if !strings.Contains(word, "://") {
			continue
		}
		if u, err := url.Parse(word); err == nil && u.Hostname() != "" {
			out = append(out, u.Hostname())
		}
	}
	return out
}
