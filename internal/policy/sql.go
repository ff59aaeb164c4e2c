package policy

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// unparsable is the verb of a query that two databases could read differently.
const unparsable = "unparsable"

// maxQuery bounds a query that is judged, in bytes.
const maxQuery = 64 << 10

// sqlVerbsOf returns what the statements of a query do, in order: each
// statement's first word in lower case, and after it every other word of the
// statement that could be a verb of its own, as in a common table expression, an
// EXPLAIN ANALYZE or a batch without semicolons. A query that could mean
// something else to another database than is seen here has the one verb
// "unparsable"; so has one without any statement.
func sqlVerbsOf(query string) []string {
	s := sqlScanner{src: query}
	if len(query) > maxQuery || !utf8.ValidString(query) || !s.scan() {
		return []string{unparsable}
	}
	s.endStatement()
	if len(s.verbs) == 0 || s.failed {
		return []string{unparsable}
	}
	return s.verbs
}

// Words that change something wherever they stand as a word of their own. Those
// that are also names of functions count only when no "(" follows.
var (
	sqlVerbs = []string{
		"alter", "analyze", "attach", "backup", "call", "copy", "create", "delete", "deny", "detach", "do", "drop", "exec", "execute", "export", "grant",
		"import", "insert", "into", "kill", "load", "lock", "merge", "optimize", "pragma", "refresh", "reindex", "rename", "replace", "restore", "revoke",
		"set", "shutdown", "truncate", "update", "upsert", "vacuum",
	}
	sqlFunctions = []string{"insert", "replace", "truncate", "set", "lock", "load", "export", "import"}
	sqlOpeners   = []string{"with", "explain", "describe", "desc"}
	sqlWriters   = []string{"insert", "merge", "replace", "upsert"}
	sqlClient    = []string{"delimiter", "go", "source", "system"} // commands of clients that change what follows
)

// sqlScanner reads a query once. It knows quotes and comments as far as the
// databases agree on them, and gives up where they do not.
type sqlScanner struct {
	src    string
	at     int
	verbs  []string
	start  int  // of the current statement in verbs
	inside bool // the current statement has a first word
	open   bool // the first word lets another verb follow, so "select" counts too
	failed bool
	dot    bool // the last token was a dot: a column, not a verb
}

func (s *sqlScanner) scan() bool {
	for s.at < len(s.src) && !s.failed {
		c := s.src[s.at]
		rest := s.src[s.at:]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			s.at++
			continue
		case strings.HasPrefix(rest, "--"):
			s.lineComment(rest)
			continue
		case strings.HasPrefix(rest, "/*"):
			s.blockComment(rest)
			continue
		case c == '\'' || c == '"' || c == '`':
			s.quoted(c)
		case c == '[':
			s.bracketed(rest)
		case c == ';':
			s.endStatement()
			s.at++
		case wordByte(c) || c >= utf8.RuneSelf:
			s.word()
			continue
		case c == '#' || c == '\\' || c == '$' || c == 0x7f || c < ' ':
			return false
		default:
			if !s.inside && c != '(' {
				return false
			}
			s.at++
		}
		s.dot = c == '.'
	}
	return !s.failed
}

// lineComment skips "-- …". MySQL wants a space after the dashes, others do
// not; a carriage return ends the line for some and not for others.
func (s *sqlScanner) lineComment(rest string) {
	body, _, _ := strings.Cut(rest[2:], "\n")
	s.failed = body != "" && body[0] != ' ' && body[0] != '\t' && body[0] != '\r' || strings.Contains(strings.TrimSuffix(body, "\r"), "\r")
	s.at += 2 + len(body)
}

// blockComment skips "/* … */". Some databases nest comments, and some run
// what stands in "/*! … */".
func (s *sqlScanner) blockComment(rest string) {
	body, _, closed := strings.Cut(rest[2:], "*/")
	s.failed = !closed || strings.HasPrefix(body, "!") || strings.HasPrefix(body, "M!") || strings.Contains(body, "/*") || strings.HasSuffix(body, "/")
	s.at += 2 + len(body) + 2
}

// quoted skips a text or a quoted name. A doubled quote stands for itself
// everywhere; a quote after a backslash only somewhere.
func (s *sqlScanner) quoted(quote byte) {
	backslashes := 0
	for i := s.at + 1; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '\\':
			backslashes++
			continue
		case c == quote && backslashes%2 == 1:
			s.failed = true
			return
		case c == quote && i+1 < len(s.src) && s.src[i+1] == quote:
			i++
		case c == quote:
			s.at = i + 1
			s.first(unparsable)
			return
		}
		backslashes = 0
	}
	s.failed = true
}

// bracketed skips "[…]", a name for some and an index for others, which is the
// same as long as nothing in it is special.
func (s *sqlScanner) bracketed(rest string) {
	end := strings.IndexByte(rest, ']')
	if end < 0 || strings.ContainsAny(rest[1:end], "[;'\"`#$\\\n\r") || strings.Contains(rest[1:end], "--") || strings.Contains(rest[1:end], "/*") {
		s.failed = true
		return
	}
	s.at += end + 1
	s.first(unparsable)
}

// first notes that a statement begins with something that is no verb.
func (s *sqlScanner) first(verb string) {
	if !s.inside {
		s.failed = verb == unparsable
		s.inside = true
	}
}

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '@'
}

func (s *sqlScanner) word() {
	from := s.at
	for s.at < len(s.src) {
		if c := s.src[s.at]; wordByte(c) || c == '$' {
			s.at++
			continue
		}
		r, n := utf8.DecodeRuneInString(s.src[s.at:])
		if r < utf8.RuneSelf {
			break
		}
		if IsHidden(r) {
			s.failed = true
			return
		}
		s.at += n
	}
	word := asciiLower(s.src[from:s.at])
	column := s.dot
	s.dot = false
	switch {
	case !s.inside:
		s.inside = true
		if slices.Contains(sqlClient, word) {
			s.failed = true
		}
		s.open = slices.Contains(sqlOpeners, word)
		s.verbs = append(s.verbs, word)
	case column, slices.Contains(sqlFunctions, word) && s.call():
	case slices.Contains(sqlVerbs, word), s.open && word == "select":
		s.verbs = append(s.verbs, word)
	}
}

// call reports whether "(" follows.
func (s *sqlScanner) call() bool {
	return strings.HasPrefix(strings.TrimLeft(s.src[s.at:], " \t\r\n"), "(")
}

// endStatement closes a statement. In one that writes rows anyway, "into" and
// "set" are no verbs of their own; an opener is only the beginning of one.
func (s *sqlScanner) endStatement() {
	own := s.verbs[s.start:]
	if slices.ContainsFunc(own, func(v string) bool { return slices.Contains(sqlWriters, v) }) {
		own = slices.DeleteFunc(own, func(v string) bool { return v == "into" })
	}
	if len(own) > 0 && slices.ContainsFunc(own, func(v string) bool { return slices.Contains(sqlWriters, v) || v == "update" }) && own[0] != "set" {
		own = slices.DeleteFunc(own, func(v string) bool { return v == "set" })
	}
	if len(own) > 0 && own[0] == "with" {
		own = slices.Delete(own, 0, 1)
		s.failed = s.failed || len(own) == 0
	}
	s.verbs = append(s.verbs[:s.start], own...)
	s.start, s.inside, s.open, s.dot = len(s.verbs), false, false, false
}

func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
