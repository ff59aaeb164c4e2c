package policy

import (
	"strings"
	"unicode/utf8"
)

// sqlText is a query and a place in it. Its methods read one token each as far
// as the databases agree on where it ends, and report whether they do.
type sqlText struct {
	src string
	at  int
}

// peek returns the byte n after the current one; past the end it is zero, which
// no token holds.
func (t *sqlText) peek(n int) byte {
	if t.at+n < len(t.src) {
		return t.src[t.at+n]
	}
	return 0
}

// gluedTo reports whether c, right after a word, a number or a quoted text,
// could make another token of it: 1into, E'…', a@b, x#y.
func (t *sqlText) gluedTo(c byte) bool {
	return isLetter(c) || isDigit(c) || c >= utf8.RuneSelf || c != 0 && strings.IndexByte("_$@#\\'\"`", c) >= 0
}

// symbol reads one byte that is a token by itself.
func (t *sqlText) symbol() bool {
	t.at++
	return true
}

// operatorBytes are the bytes of operators and the comma. What is not among them
// is special somewhere: "#" is a comment or a name, "{" belongs to drivers.
const operatorBytes = "(+-*/%=<>!~^&|,?@"

// operator reads one byte of an operator. Where operators end does not matter,
// as long as none of them can be the beginning of something else.
func (t *sqlText) operator() bool {
	c, next := t.peek(0), t.peek(1)
	switch {
	case strings.IndexByte(operatorBytes, c) < 0,
		c == '*' && next == '/',                                // the end of a comment that was none here
		c == '&' && (next == '\'' || next == '"'),              // U&'…'
		c == '@' && next != '@' && t.gluedTo(next),             // a name of a user, an operator or a variable
		(c == '@' || c == '?') && (next == '.' || next == ':'): // MySQL and SQLite read on
		return false
	}
	return t.symbol()
}

// plainWord reads a keyword or a name and returns it in lower case. end is what
// may touch it besides what may touch any word.
func (t *sqlText) plainWord(end byte) (string, bool) {
	from := t.at
	if c := t.peek(0); !isLetter(c) && c != '_' {
		return "", false
	}
	part := func(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }
	for part(t.peek(0)) || t.peek(0) == '$' && t.src[t.at-1] != '$' && part(t.peek(1)) {
		t.at++
	}
	next := t.peek(0)
	return strings.ToLower(t.src[from:t.at]), next != 0 && next == end || !t.gluedTo(next)
}

// number reads 1, 1.5, .5 and 1e-5. What else is a number somewhere is two
// tokens elsewhere: "1.", "1e", "0x1", "1_000".
func (t *sqlText) number() bool {
	digits := func() bool {
		from := t.at
		for isDigit(t.peek(0)) {
			t.at++
		}
		return t.at > from
	}
	whole := digits()
	if t.peek(0) == '.' {
		t.at++
		whole = digits()
	}
	if c := t.peek(0) | 0x20; whole && c == 'e' {
		t.at++
		if c := t.peek(0); c == '+' || c == '-' {
			t.at++
		}
		whole = digits()
	}
	return whole && t.peek(0) != '.' && !t.gluedTo(t.peek(0))
}

// quoteLike are characters that become quotes, backslashes or semicolons when a
// client turns the query into an older character set.
const quoteLike = "ʹʺʻʼˈ′″‵‶＇＂｀；＼﹔﹨"

// quoted reads a text or a quoted name. A doubled quote stands for itself
// everywhere; a backslash escapes only somewhere.
func (t *sqlText) quoted(quote byte) bool {
	for t.at++; t.at < len(t.src); {
		switch c := t.src[t.at]; {
		case c == quote && t.peek(1) == quote:
			t.at += 2
		case c == quote:
			t.at++
			return !t.gluedTo(t.peek(0))
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(t.src[t.at:])
			if strings.ContainsRune(quoteLike, r) {
				return false
			}
			t.at += n
		case c == '\\' || !t.printable(c) || c == '\n' && quote == '"':
			return false
		default:
			t.at++
		}
	}
	return false
}

// printable reports whether the current byte c is ASCII that texts are made of. A
// carriage return ends a line for some and not for others, unless a line feed follows.
func (t *sqlText) printable(c byte) bool {
	return ' ' <= c && c < 0x7f || c == '\t' || c == '\n' || c == '\r' && t.peek(1) == '\n'
}

// lineComment reads "-- …". MySQL wants a space after the dashes, others do not.
func (t *sqlText) lineComment() bool {
	t.at += 2
	if c := t.peek(0); t.at < len(t.src) && c != ' ' && c != '\t' && c != '\n' && c != '\r' {
		return false
	}
	for t.at < len(t.src) && t.src[t.at] != '\n' {
		if !t.comment() {
			return false
		}
	}
	return true
}

// blockComment reads "/* … */". Some databases nest comments, some run what stands
// in "/*! … */", and "/*+ … */" speaks to the planner.
func (t *sqlText) blockComment() bool {
	t.at += 2
	if c, next := t.peek(0), t.peek(1); c == '/' || c == '!' || c == '+' || c|0x20 == 'm' && next == '!' {
		return false
	}
	for t.at < len(t.src) {
		switch c, next := t.peek(0), t.peek(1); {
		case c == '*' && next == '/':
			t.at += 2
			return true
		case c == '/' && next == '*':
			return false
		}
		if !t.comment() {
			return false
		}
	}
	return false
}

// comment reads one byte of a comment. Clients that split a query at semicolons
// do not always know comments.
func (t *sqlText) comment() bool {
	c := t.src[t.at]
	ok := t.printable(c) && c != ';' && c != '\\'
	t.at++
	return ok
}
