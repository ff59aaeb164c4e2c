package policy

import (
	"regexp"
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
// EXPLAIN ANALYZE or a batch without semicolons. A query that PostgreSQL, MySQL,
// MariaDB, SQLite or SQL Server could read differently than it is read here has
// the one verb "unparsable"; so has one without any statement.
func sqlVerbsOf(query string) []string {
	if len(query) > maxQuery || !utf8.ValidString(query) || clientLine.MatchString(query) {
		return []string{unparsable}
	}
	s := sqlReader{sqlText: sqlText{src: query}}
	for s.at < len(s.src) {
		if !s.token() {
			return []string{unparsable}
		}
	}
	if !s.endStatement() || len(s.verbs) == 0 {
		return []string{unparsable}
	}
	return s.verbs
}

// clientLine finds lines that clients take for themselves, some of them even in
// the middle of a text or a comment.
var clientLine = regexp.MustCompile(`(?im)^[ \t]*(?:[:!\\]|(?:delimiter|go)(?:[^a-z0-9_]|$))|\$\(`)

// sqlVerbs are the words that begin something with an effect wherever they stand
// as a word: inside another statement, or after one where no semicolon is needed.
var sqlVerbs = wordSet(`
	alter analyse analyze attach backup bulk call checkpoint commit copy create dbcc deallocate delete deny detach disable do drop dumpfile enable
	exec execute export grant handler import insert into kill load lock merge move optimize outfile pragma prepare purge raiserror receive
	reconfigure refresh reindex rename replace restore revert revoke rollback save send set setuser shutdown truncate update updatetext upsert use
	vacuum waitfor writetext`)

// sqlStarts are further words that begin a statement. A statement that begins with
// any other word is unparsable: some databases run the procedure of that name.
var sqlStarts = wordSet(`
	abort begin binlog change check checksum clone close cluster comment declare desc describe discard end explain fetch flush help if install listen
	notify open print reassign release repair reset resignal savepoint security select show signal start table throw uninstall unlisten values while
	with xa`)

var (
	sqlOpeners   = wordSet("with explain describe desc") // another verb follows, so "select" counts too
	sqlFunctions = wordSet("insert replace truncate")    // also names of functions

	// sqlReserved are words that are no names, so that after them an operand begins.
	sqlReserved = wordSet(`
	all and any as between by case distinct else end from having in is join like limit not null offset on or over select some then union using values when where`)

	// sqlBeforeInto may stand between INSERT and the INTO that belongs to it.
	sqlBeforeInto = wordSet("abort delayed fail high_priority ignore low_priority or replace rollback")

	sqlClient = wordSet("delimiter go") // commands of clients that change how the rest is read
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// sqlReader reads a query once, token by token. A token that not every database
// would end at the same byte ends the reading.
type sqlReader struct {
	sqlText
	verbs []string

	start int    // of the current statement in verbs
	depth int    // of parentheses
	begun bool   // the current statement has a first word
	open  bool   // the statement's first word is an opener
	prev  string // the token before: a word in lower case, or the first byte of another
	near  int    // where that token ended
	into  bool   // an INTO that comes next belongs to the INSERT before it
	named bool   // the token before was a word that can be a name
	set   bool   // the next SET belongs to the UPDATE or INSERT before it
}

// token reads one token, or reports that the query is unparsable.
func (s *sqlReader) token() bool {
	from := s.at
	c, next := s.peek(0), s.peek(1)
	prev := string(c)
	var ok bool
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' && next == '\n':
		s.at++
		return true
	case c == '-' && next == '-':
		return s.lineComment()
	case c == '/' && next == '*':
		return s.blockComment()
	case isLetter(c) || c == '_':
		return s.word()
	case c == ';':
		s.at++
		return s.endStatement()
	case c == '(':
		ok = s.symbol()
		s.depth++
	case !s.begun:
		return false // no statement begins with anything else
	case c == ')':
		ok = s.symbol()
		s.depth--
		ok = ok && s.depth >= 0
	case c == '\'' || c == '"':
		ok = s.quoted(c)
	case c == '`':
		return s.backticked()
	case c == '[':
		return s.bracketed()
	case isDigit(c) || c == '.' && isDigit(next):
		ok = (c != '.' || s.near != s.at || s.after(operatorBytes)) && s.number()
	case c == '$' || c == '@' && (isLetter(next) || next == '_' || next == '@' && isLetter(s.peek(2))) || c == ':' && isLetter(next):
		return s.variable()
	case c == '.':
		ok = s.separator()
	case c == ':':
		ok = s.colon()
	default:
		ok = s.operator()
	}
	s.into, s.named = false, s.named && c == '.'
	s.prev, s.near = prev, s.at
	return ok && s.at > from
}

// after reports whether the token before was one of these bytes.
func (s *sqlReader) after(symbols string) bool {
	return len(s.prev) == 1 && strings.IndexByte(symbols, s.prev[0]) >= 0
}

// separator reads the dot within a name: nothing but the parts of a name touch it.
func (s *sqlReader) separator() bool {
	next := s.peek(1)
	if s.near != s.at || !isName(s.prev) && !s.after("\"`]") {
		return false
	}
	return (isLetter(next) || next == '_' || next == '*' || next == '"' || next == '`' || next == '[') && s.symbol()
}

// isName reports whether a token was a word that can be a name.
func isName(prev string) bool {
	return prev != "" && (isLetter(prev[0]) || prev[0] == '_') && !sqlReserved[prev] && !sqlVerbs[prev]
}

// colon reads "::" before the name of a type, or ":=".
func (s *sqlReader) colon() bool {
	next, after := s.peek(1), s.peek(2)
	if s.prev == ":" && s.near == s.at || !(next == '=' || next == ':' && isLetter(after)) {
		return false
	}
	s.at += 2
	return true
}

// word reads a keyword or a name and notes the verbs.
func (s *sqlReader) word() bool {
	column := s.prev == "." && s.near == s.at && s.named
	word, ok := s.plainWord(0)
	if !ok || sqlClient[word] || word == "stdin" && slices.Contains(s.verbs[s.start:], "copy") {
		return false
	}
	s.named = isName(word)
	return s.verb(word, column || sqlFunctions[word] && s.peek(0) == '(' && s.operand())
}

// operand reports whether the token before makes what follows a value, not the
// beginning of another statement.
func (s *sqlReader) operand() bool {
	return sqlReserved[s.prev] && s.prev != "end" && s.prev != "null" || s.after("(,=<>+-/%|")
}

// verb notes a word. A word that is known to be a name is none, except as the
// first one of a statement.
func (s *sqlReader) verb(word string, name bool) bool {
	belongs := word == "into" && s.into || word == "set" && s.set
	s.into = s.into && sqlBeforeInto[word]
	s.prev, s.near = word, s.at
	switch {
	case !s.begun:
		if !sqlVerbs[word] && !sqlStarts[word] {
			return false
		}
		s.begun, s.open = true, sqlOpeners[word]
		s.verbs = append(s.verbs, word)
	case name:
		return true
	case belongs:
		s.set = s.set && word != "set"
	case sqlVerbs[word], s.open && word == "select":
		s.verbs = append(s.verbs, word)
	}
	switch word {
	case "insert", "replace", "merge", "upsert":
		s.into, s.set = true, word != "merge"
	case "update":
		s.set = true
	}
	return true
}

// variable reads "$1", "@name", "@@name" and ":name". To PostgreSQL the sign may
// be an operator, so the name counts as a word. SQLite lets such a name go on
// with "::" and with anything in parentheses.
func (s *sqlReader) variable() bool {
	if s.near == s.at && s.after("$@:") {
		return false
	}
	sign := s.peek(0)
	s.at++
	if s.peek(0) == '@' {
		s.at++
	}
	if sign == '$' {
		if !isDigit(s.peek(0)) || !s.number() {
			return false
		}
	} else if word, ok := s.plainWord(0); !ok || !s.verb(word, false) {
		return false
	}
	for s.peek(0) == ':' && s.peek(1) == ':' {
		s.at += 2
		if word, ok := s.plainWord(0); !ok || !s.verb(word, false) {
			return false
		}
	}
	s.prev, s.near, s.named, s.into = "$", s.at, false, false
	return s.peek(0) != '(' && s.peek(0) != '.'
}

// backticked reads "`name`". To PostgreSQL backticks are operators, so that the
// name is a word and counts as one.
func (s *sqlReader) backticked() bool {
	s.at++
	word, ok := s.plainWord('`')
	if !ok || s.peek(0) != '`' || !s.verb(word, false) {
		return false
	}
	return s.closed('`')
}

// bracketed reads "[…]", a name for some and an index for others. It may hold
// words, which count, and numbers.
func (s *sqlReader) bracketed() bool {
	s.at++
	for c := s.peek(0); c != ']'; c = s.peek(0) {
		switch {
		case c == ' ' || c == ',':
			s.at++
		case isDigit(c):
			if !s.number() {
				return false
			}
		case isLetter(c) || c == '_':
			if word, ok := s.plainWord(']'); !ok || sqlClient[word] || !s.verb(word, false) {
				return false
			}
		default:
			return false
		}
	}
	return s.closed(']')
}

// closed ends a quoted name. A doubled end would not be one.
func (s *sqlReader) closed(c byte) bool {
	s.at++
	s.prev, s.near, s.named, s.into = string(c), s.at, false, false
	return !s.gluedTo(s.peek(0)) && s.peek(0) != c
}

// endStatement closes a statement; an opener is only the beginning of one.
func (s *sqlReader) endStatement() bool {
	own := s.verbs[s.start:]
	if len(own) > 0 && own[0] == "with" {
		own = slices.Delete(own, 0, 1)
		if len(own) == 0 {
			return false
		}
	}
	balanced := s.depth == 0 && (s.begun || s.prev != "(" && s.prev != ")")
	s.verbs = append(s.verbs[:s.start], own...)
	s.start, s.begun, s.open, s.prev, s.into, s.set, s.named = len(s.verbs), false, false, "", false, false, false
	return balanced
}
