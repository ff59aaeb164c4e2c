package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// reason says why an expression has no value. It is for people and never holds
// a value of the call. The empty reason is none.
type reason string

// scope is a named set of paths or of hosts.
type scope struct {
	paths, pathsExcept     []pathPattern
	domains, domainsExcept []domainPattern
	folded                 bool // the paths have no upper case
}

// pathPattern names paths: segments in which "*" stands for any run of
// characters, and "**" as a whole segment for any number of segments.
type pathPattern struct {
	workspace bool // relative to the root of the workspace
	segments  []string
	folded    []string // segments in folded case
}

const workspaceVariable = "${workspace}"

func parsePathPattern(s string) (pathPattern, string) {
	var p pathPattern
	rest, found := strings.CutPrefix(s, workspaceVariable)
	switch {
	case found:
		p.workspace = true
		if rest == "" {
			return p, ""
		}
	case strings.HasPrefix(s, "**/"):
		rest = "/" + s
	}
	switch {
	case HasHidden(rest) || strings.Contains(rest, "\n"):
		return p, "a path pattern holds no hidden characters"
	case !norm.NFC.IsNormalString(rest):
		return p, "a path pattern must be in Unicode normal form NFC"
	case !strings.HasPrefix(rest, "/"):
		return p, `a path pattern begins with "/", "${workspace}" or "**/"`
	case strings.ContainsAny(rest, `\?[]{}$`):
		return p, `the only wildcards in a path pattern are "*" and "**"`
	}
	p.segments = strings.Split(rest[1:], "/")
	for _, seg := range p.segments {
		switch {
		case seg == "":
			return p, `a path pattern has no empty segment; write "/dir/**" for all that is beneath a directory`
		case seg == "." || seg == "..":
			return p, `a path pattern has no "." and no ".."`
		case strings.Contains(seg, "**") && seg != "**":
			return p, `"**" must be a whole segment`
		}
		p.folded = append(p.folded, fold(seg))
	}
	return p, ""
}

// beneath is the pattern that also names everything below what p names.
func (p pathPattern) beneath() pathPattern {
	p.segments = append(slices.Clip(p.segments), "**")
	p.folded = append(slices.Clip(p.folded), "**")
	return p
}

// maxPath bounds a path that is judged, in bytes.
const maxPath = 4096

// holds reports whether a path is in the scope: named by one of its patterns and
// neither named by an exception nor beneath one. The comparison is lexical: what
// the path is a link to, only the tool knows. A path that another program could
// read as another one has no answer, only a reason.
func (s *scope) holds(p, root string) (bool, reason) {
	if root != "" {
		if cleaned, why := cleanPath(root, ""); why != "" || cleaned == "/" {
			return false, "the workspace's root cannot be used"
		} else {
			root = cleaned
		}
	} else if slices.ContainsFunc(s.paths, func(p pathPattern) bool { return p.workspace }) {
		return false, "the workspace's root is not known"
	}
	cleaned, why := cleanPath(p, root)
	if why != "" {
		return false, why
	}
	in := s.names(cleaned, root, false)
	if s.folded && isFolded(cleaned) && isFolded(root) {
		return in, "" // there is only one case
	}
	if s.names(fold(cleaned), fold(root), true) != in {
		return false, "the path differs from the scope only in upper and lower case"
	}
	return in, ""
}

func (s *scope) names(cleaned, root string, folded bool) bool {
	var buf [32]string
	all := appendSegments(buf[:0], cleaned)
	within := -1 // segments of the root, when the path is in the workspace
	if root != "" && (cleaned == root || strings.HasPrefix(cleaned, root) && cleaned[len(root)] == '/') {
		within = strings.Count(root, "/")
	}
	names := func(p pathPattern) bool {
		segments, path := p.segments, all
		if folded {
			segments = p.folded
		}
		if p.workspace {
			if within < 0 {
				return false
			}
			path = all[within:]
		}
		return matchSegments(segments, path)
	}
	return slices.ContainsFunc(s.paths, names) && !slices.ContainsFunc(s.pathsExcept, names)
}

func appendSegments(out []string, cleaned string) []string {
	for rest := cleaned[1:]; rest != ""; {
		seg, after, _ := strings.Cut(rest, "/")
		out, rest = append(out, seg), after
	}
	return out
}

// slashLike are characters that become slashes or backslashes in older character
// sets. Those that Unicode itself calls compatible, such as "／", need no list.
const slashLike = "⁄∕⧸╱∖⧵⧹"

// cleanPath returns the absolute path that p lexically is, or why it is none.
func cleanPath(p, root string) (string, reason) {
	switch {
	case p == "":
		return "", "the path is empty"
	case len(p) > maxPath:
		return "", "the path is too long"
	}
	switch {
	case strings.HasPrefix(p, "//"):
		return "", "the path begins with two slashes, which name another machine on some systems"
	case strings.IndexByte("$`|<>!&-", p[0]) >= 0:
		return "", "the path begins with a character that programs give a meaning to"
	case strings.Contains(p, "..;"), strings.Contains(p, "{") && strings.Contains(p, ","):
		return "", "the path holds something that some programs expand or leave out"
	}
	for i := range len(p) {
		switch c := p[i]; {
		case c == '\\':
			return "", "the path holds a backslash"
		case c == '*' || c == '?':
			return "", "the path holds a wildcard"
		case c < ' ' || c == 0x7f:
			return "", "the path holds a control character"
		case c == '%' && i+1 < len(p) && (isHex(p[i+1]) || p[i+1]|0x20 == 'u' || p[i+1] == '%'):
			return "", "the path holds a percent escape"
		case c == ':':
			return "", "the path holds a colon"
		case c == '~' && (i == 0 || p[i-1] == '/' || i+1 < len(p) && '0' <= p[i+1] && p[i+1] <= '9'):
			return "", "the path holds a tilde that some systems expand"
		case c >= utf8.RuneSelf:
			if HasHidden(p) || !norm.NFKC.IsNormalString(p) || strings.ContainsAny(p, slashLike) {
				return "", "the path holds hidden or unusual characters"
			}
		case (c == '.' || c == ' ') && (i+1 == len(p) || p[i+1] == '/') && !dots(p, i):
			return "", "a part of the path ends with a dot or a space"
		}
	}
	if p[0] != '/' {
		if root == "" {
			return "", "the path is relative and the workspace's root is not known"
		}
		p = root + "/" + p
	}
	return path.Clean(p), ""
}

// dots reports whether the segment that ends at i is "." or "..".
func dots(p string, i int) bool {
	from := strings.LastIndexByte(p[:i+1], '/') + 1
	seg := p[from : i+1]
	return seg == "." || seg == ".."
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// matchSegments matches a path against a pattern. One "**" is tried at a time,
// the last one seen: an earlier one never has to take more than it first did.
func matchSegments(pattern, path []string) bool {
	p, s, star, mark := 0, 0, -1, 0
	for s < len(path) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			star, mark = p, s
			p++
		case p < len(pattern) && matchSegment(pattern[p], path[s]):
			p++
			s++
		case star >= 0:
			mark++
			p, s = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}

// matchSegment matches one segment, in which "*" stands for any run of bytes.
func matchSegment(pattern, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// isFolded reports whether s is plain ASCII without upper case, which folding
// does not change.
func isFolded(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// fold maps letters that a file system could take for one another onto one:
// the smallest of those that differ only in case.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		if r < utf8.RuneSelf && r != 'k' && r != 's' {
			return r
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		if 'A' <= least && least <= 'Z' {
			return least + 'a' - 'A'
		}
		return least
	}, s)
}
