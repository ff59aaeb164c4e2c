package policy

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// maxCommand bounds a command line that is judged, in bytes.
const maxCommand = 16 << 10

// argvOf returns the words of a command line that is one simple command and
// means the same to sh, dash, bash, ksh, zsh and fish. Anything else has no words, only a reason:
// operators, redirections, substitutions, variables, globs, braces, tildes,
// assignments, comments, several lines.
func argvOf(parser *syntax.Parser, command string) ([]string, reason) {
	if len(command) > maxCommand {
		return nil, "the command is too long"
	}
	if strings.Contains(command, "\n") || HasHidden(command) {
		return nil, "the command holds a line break or hidden characters"
	}
	file, err := parser.Parse(strings.NewReader(command), "")
	if err != nil {
		return nil, "the command cannot be parsed"
	}
	if len(file.Stmts) != 1 || len(file.Last) > 0 {
		return nil, "the command is not one simple command"
	}
	stmt := file.Stmts[0]
	simple, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || stmt.Semicolon.IsValid() ||
		len(stmt.Redirs) > 0 || len(stmt.Comments) > 0 || len(simple.Assigns) > 0 || len(simple.Args) == 0 {
		return nil, "the command is not one simple command"
	}
	words := make([]string, len(simple.Args))
	for i, w := range simple.Args {
		word, ok := plainWord(w)
		if !ok {
			return nil, "the command holds something that a shell expands"
		}
		words[i] = word
	}
	if words[0] == "" || strings.Contains(words[0], "=") {
		return nil, "the command is not one simple command"
	}
	return words, ""
}

// shellParsers keeps parsers for reuse: making one costs more than using it.
type shellParsers struct{ pool sync.Pool }

func (p *shellParsers) argv(command string) ([]string, reason) {
	if words, ok := plainWords(command); ok {
		return words, ""
	}
	parser, ok := p.pool.Get().(*syntax.Parser)
	if !ok {
		parser = syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	}
	defer p.pool.Put(parser)
	return argvOf(parser, command)
}

// reserved are the words that make a shell, or its parser, read something else
// than a command and its arguments.
var reserved = []string{
	"case", "coproc", "declare", "do", "done", "elif", "else", "esac", "eval", "exec", "export", "fi", "for", "foreach", "function", "if", "in", "let",
	"local", "nameref", "readonly", "repeat", "select", "then", "time", "typeset", "until", "while",
}

// plainWords splits a command of which every byte stands for itself, which needs
// no parser. ok is false for all others.
func plainWords(command string) (words []string, ok bool) {
	if len(command) > maxCommand {
		return nil, false
	}
	for i := range len(command) {
		if c := command[i]; c != ' ' && (c >= utf8.RuneSelf || c == '=' || !harmless(rune(c))) {
			return nil, false
		}
	}
	words = strings.Fields(command)
	if len(words) == 0 || words[0][0] == '@' || slices.Contains(reserved, words[0]) {
		return nil, false
	}
	return words, true
}

// plainWord returns what a word stands for when no expansion takes part in it.
func plainWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for i, part := range w.Parts {
		ok := false
		switch part := part.(type) {
		case *syntax.Lit:
			ok = unquoted(&b, part.Value, i == 0)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
			// To fish a backslash escapes a quote and itself even here.
			ok = !part.Dollar && !strings.Contains(part.Value, `\\`) && !strings.HasSuffix(part.Value, `\`)
		case *syntax.DblQuoted:
			ok = !part.Dollar && doubleQuoted(&b, part.Parts)
		}
		if !ok {
			return "", false
		}
	}
	return b.String(), true
}

// unquoted writes a literal outside quotes. Only characters that no shell gives
// a meaning to are accepted, so the list says what is harmless, not what is not.
func unquoted(b *strings.Builder, s string, first bool) bool {
	if first && strings.HasPrefix(s, "=") {
		return false // zsh: the path of a command
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\\' {
			if i += n; i == len(s) {
				return false
			}
			r, n = utf8.DecodeRuneInString(s[i:])
			if strings.ContainsRune("abcefnrtuvxUX01234567", r) {
				return false // fish: a control character or a code
			}
		} else if !harmless(r) {
			return false
		}
		b.WriteRune(r)
		i += n
	}
	return true
}

func harmless(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r >= utf8.RuneSelf || strings.ContainsRune("_@%+=:,./-", r)
}

// doubleQuoted writes the inside of double quotes, where a backslash escapes
// only what would otherwise be special.
func doubleQuoted(b *strings.Builder, parts []syntax.WordPart) bool {
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return false
		}
		s := lit.Value
		for i := 0; i < len(s); i++ {
			switch s[i] {
			case '\\':
				if i+1 < len(s) && s[i+1] == '`' {
					return false // fish: two characters
				}
				if i+1 < len(s) && strings.IndexByte("\"\\$", s[i+1]) >= 0 {
					i++
				}
			case '$', '`', '!':
				return false
			}
			b.WriteByte(s[i])
		}
	}
	return true
}
