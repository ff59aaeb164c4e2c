package policy

import (
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxURL bounds a URL that is judged, in bytes.
const maxURL = 8192

// hostOf returns the host of a URL as every program must read it: lower case,
// names in their ASCII form, addresses in their one canonical form. A URL that
// two programs could read differently has no host, only a reason.
func hostOf(u string) (string, reason) {
	if len(u) > maxURL {
		return "", "the URL is too long"
	}
	for i := range len(u) {
		if c := u[i]; c <= ' ' || c == 0x7f || c == '\\' {
			return "", "the URL holds a space, a control character or a backslash"
		}
	}
	if HasHidden(u) {
		return "", "the URL holds hidden characters"
	}
	scheme, rest, ok := strings.Cut(u, "://")
	if !ok || !slices.Contains(schemes, strings.ToLower(scheme)) {
		return "", "the URL is not of the form scheme://host, with a scheme that reaches its host"
	}
	// Programs have differed on whether "?" and "#" end the host, so that what
	// stands before a later "@" was user information to some.
	authority, sure := rest, rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	if end := strings.IndexByte(rest, '/'); end >= 0 {
		sure = rest[:end]
	}
	if strings.Contains(sure, "@") {
		return "", "the URL holds user information"
	}
	host, port := authority, ""
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return "", "the URL's host is malformed"
		}
		host, port = authority[:end+1], authority[end+1:]
	} else if colon := strings.IndexByte(authority, ':'); colon >= 0 {
		host, port = authority[:colon], authority[colon:]
	}
	if port != "" && !isPort(port) {
		return "", "the URL's port is malformed"
	}
	return canonicalHost(host)
}

// schemes are those whose URLs lead to their host and nowhere else: "file" leads
// to this machine, "data" nowhere, and those of databases take another host from
// the query.
var schemes = []string{"https", "http", "wss", "ws", "ftp", "ftps", "sftp", "ssh", "git"}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isPort(s string) bool {
	digits := s[1:]
	if s[0] != ':' || len(digits) > 5 || strings.Trim(digits, "0123456789") != "" {
		return false
	}
	return len(digits) < 5 || digits <= "65535"
}

// canonicalHost returns a host name's or address's one spelling.
func canonicalHost(host string) (string, reason) {
	if strings.HasPrefix(host, "[") {
		addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil || !addr.Is6() || addr.Is4In6() || addr.Zone() != "" {
			return "", "the URL's host is not a plain address"
		}
		return addr.String(), ""
	}
	if strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil || HasHidden(host) || strings.ContainsAny(host, "ßς") {
			return "", "the URL's host is not a valid international name"
		}
		// A name that is mapped before it is encoded, such as "ａ。example", is
		// another one for programs that do not map.
		if plain, err := idna.Lookup.ToUnicode(ascii); err != nil || plain != strings.ToLower(host) {
			return "", "the URL's host is not an international name in its plain form"
		}
		host = ascii
	}
	host = strings.ToLower(host)
	if len(host) > 253 {
		return "", "the URL's host is too long"
	}
	last := host
	for rest, more := host, true; more; {
		last, rest, more = strings.Cut(rest, ".")
		if !isLabel(last) {
			return "", "the URL's host is malformed"
		}
	}
	// A last label that is a number makes a name an address for browsers and for
	// C libraries, in many spellings; one of them is accepted.
	if isDigit(last[0]) && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")) {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.String() != host {
			return "", "the URL's host is not a plain address"
		}
	}
	return host, ""
}

// isLabel reports whether s is a label of a host name in ASCII form.
func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && !isDigit(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// domainPattern names a host, or with wild every host below it.
type domainPattern struct {
	host string
	wild bool
}

func parseDomainPattern(s string) (domainPattern, string) {
	name, wild := strings.CutPrefix(s, "*.")
	if strings.Contains(name, "*") {
		return domainPattern{}, `"*." may only stand at the beginning of a domain`
	}
	if strings.Contains(name, ":") && !strings.HasPrefix(name, "[") {
		return domainPattern{}, "a domain has no scheme and no port"
	}
	host, why := canonicalHost(name)
	if why != "" {
		return domainPattern{}, `"` + s + `" is not a domain such as "api.example.com" or "*.example.com"`
	}
	return domainPattern{host, wild}, ""
}

// names compares labels: "*.example.com" is no suffix of "evil-example.com".
func (d domainPattern) names(host string) bool {
	if !d.wild {
		return host == d.host
	}
	below, found := strings.CutSuffix(host, d.host)
	return found && len(below) > 1 && below[len(below)-1] == '.'
}

// hosts reports whether a URL's host is in the scope.
func (s *scope) hosts(u string) (bool, reason) {
	host, why := hostOf(u)
	if why != "" {
		return false, why
	}
	in := func(d domainPattern) bool { return d.names(host) }
	return slices.ContainsFunc(s.domains, in) && !slices.ContainsFunc(s.domainsExcept, in), ""
}
