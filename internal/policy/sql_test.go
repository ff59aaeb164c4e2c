package policy

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// POL-09, POL-16: every statement and every verb is seen, or nothing is claimed.
func TestSQLVerbs(t *testing.T) {
	for query, want := range map[string]string{
		"select 1": "select",
		"SELECT * FROM t WHERE a = 'x; drop table y'": "select",
		"select 1; drop table x":                      "select drop",
		"select 1;;;":                                 "select",
		"  ( select 1 ) ":                             "select",
		"-- a comment\nselect 1":                      "select",
		"--\nselect 1":                                "select",
		"/* drop table x */ select 1":                 "select",
		"drop/**/table x":                             "drop",
		"DrOp TABLE x":                                "drop",
		"truncate x":                                  "truncate",
		"with a as (delete from x returning *) select * from a":        "delete select",
		"WITH a AS (SELECT 1) SELECT * FROM a":                         "select select",
		"explain analyze delete from x":                                "explain analyze delete",
		"explain select 1":                                             "explain select",
		"select 1 drop table x":                                        "select drop", // T-SQL needs no semicolon
		"select * into newtable from x":                                "select into",
		"select * from x into outfile '/tmp/x'":                        "select into outfile",
		"insert into x values (1)":                                     "insert",
		"insert into x select * from y":                                "insert",
		"insert into x values (1) on conflict (a) do update set a = 2": "insert do update",
		"update x set a = 1":                                           "update",
		"set role admin":                                               "set",
		"select t.update, t.drop from t":                               "select",
		"select t . drop from t":                                       "unparsable",
		"select 'it''s', \"drop\", `drop`, [drop] from t":              "select drop drop",
		"select replace(a, 'b', 'c'), truncate(1.5, 0) from t":         "select",
		"select 1 where a = 'C:\\dir\\x'":                              "unparsable",
		"select a[1], $1, @p, :name, ? from t":                         "select",
		"select a[1], @p, :name, ? from t":                             "select",
		"exec('drop table x')":                                         "exec",
		"select 1; exec ('x')":                                         "select exec",
		"EXECUTE x":                                                    "execute",
		"xp_cmdshell 'dir'":                                            "unparsable",
		"merge into t using s on 1=1 when matched then delete":         "merge delete",
		"create table x as select 1":                                   "create",
		"alter table x drop column y":                                  "alter drop",
		"grant all on x to y":                                          "grant",
		"copy t to program 'sh'":                                       "copy",
		"call p()":                                                     "call",
		"do 'x'":                                                       "do",
		"begin; delete from x; commit":                                 "begin delete commit",
		"pragma writable_schema = 1":                                   "pragma",
		"select 1 for update":                                          "select update",
		"größe":                                                        "unparsable",

		"":                                   "unparsable",
		" ; ; ":                              "unparsable",
		"-- nothing":                         "unparsable",
		"'x' drop":                           "unparsable",
		"[x] drop":                           "unparsable",
		"* drop":                             "unparsable",
		"select 'open":                       "unparsable",
		`select 'a\'; drop table x; --'`:     "unparsable",
		`select '\''; drop table x; -- '`:    "unparsable",
		"select $$x$$; drop table y":         "unparsable",
		"select $tag$ x $tag$":               "unparsable",
		"select /* /* */ drop table x -- */": "unparsable",
		"select 1 /*! drop table x */":       "unparsable",
		"select 1 /*M! drop table x */":      "unparsable",
		"select 1 /* open":                   "unparsable",
		"select 1--1; drop table x":          "unparsable",
		"select 1 # comment\n; drop table x": "unparsable",
		"select 1 -- x\r; drop table x":      "unparsable",
		`\! rm -rf`:                          "unparsable",
		`select 1 \g`:                        "unparsable",
		"delimiter //\ndrop table x//":       "unparsable",
		"select 1\ngo\ndrop table x; go":     "unparsable",
		"select [a;b] from t":                "unparsable",
		"select [a from t":                   "unparsable",
		"select [a--b] from t":               "unparsable",
		"select\u200b 1":                     "unparsable",
		"dr\u00adop table x":                 "unparsable",
		"select 1 \x00":                      "unparsable",
		"with":                               "unparsable",
		"with x as (values (1))":             "unparsable",
		"select 1 \xff":                      "unparsable",
		"select '" + strings.Repeat("a", maxQuery) + "'": "unparsable",
	} {
		if got := strings.Join(sqlVerbsOf(query), " "); got != want {
			t.Errorf("%.80q: %s, want %s", query, got, want)
		}
	}
}

// POL-09, POL-16: what one database would read in another way has no verbs. Each
// of these has hidden a statement from some reader of SQL, or could.
func TestSQLUnparsable(t *testing.T) {
	for _, query := range []string{
		// Dollar quotes.
		"select '{a}'::text[] <@$${'}$$; delete from users; --'", "select @$$'$$; drop table t; --'", "select a<@$x$'$x$", "select $$", "select $", "select $a",
		"select a$$b", "select a$ from t", "select 1$$'$$", "select $1$1", "select '$(x)'", "select $1a",
		// Numbers that touch what follows.
		"select 1. into foo from users", "select 1into foo", "select 1. drop table users", "select 1.drop table x", "select 1delete from users",
		"select 1. into outfile '/tmp/x'", "select 1e into foo", "select 1e5into foo", "select 1.e(x)", "select 0x1F", "select 1_000", "select 1..drop", "select 1.5.drop",
		"select .5drop", "select t.5drop", "select 1'a'", "select 1\"a\"", "select @1", "select 1@a", "select 1#", "select $1drop", "select $1. drop table x", "select $1.drop",
		// Texts that do not end at the same place everywhere.
		`select 'a\'; drop table x; --'`, `select 'a\\'`, `select "a\"; drop table x; --"`, "select E'a'", "select e'\\''", "select N'a'", "select n'a'", "select q'[']; drop table x; --]'",
		"select U&'a'", "select u&\"a\"", "select U&'!0027' uescape '!'", "select X'41'", "select b'1'", "select _utf8'a'", "select 'a'b", "select 'a'1", "select 'a'$1", "select 'a'@b", "select 'a'\"b\"",
		"select 'open", "select \"open", "select `open", "select [open", "select 'a''", "select \"a\nb\"", "select 'a\x00b'", "select 'a\x1ab'", "select 'a\rb'", "select 'aʼ; drop table x'", "select '＇'",
		// Quoted names that are operators or indexes elsewhere.
		"select ` '`; drop table x; --'", "select `a b`", "select `a``b`", "select `a`b", "select ``", "select [a;b]", "select [']; drop table x; --']", "select [a]]b]", "select [a[b]]", "select [a]b",
		"select [a--b]", "select [/*]", "select ['a']", "select [größe]", "`drop` x", "[drop] x", "\"drop\" x", "select [go]",
		// Comments.
		"select 1--1", "select 1 --x", "select 1 --; drop table x", "select 1 -- a; drop table x", "select 1 # x", "select 1 #", "select a#>b", "select /* /* */ 1 */", "select /* a /*/ 1 */ 2",
		"select /*/ 1 */", "select /*! 1 */", "select /*!50000 drop */ 1", "select /*M! 1 */", "select /*m!1 */", "select /*+ x */ 1", "select 1 /*", "select 1 /* x", "select */ 1", "select /* ; */ 1",
		"select 1 /* größe */", "select 1 -- größe", "select 1 -- x\ry", "select /* \x00 */ 1", "select /* \\ */ 1",
		// Variables of SQLite go on; variables of others do not.
		"select :a('); drop table x; --'", "select $1('); drop table x; --'", "select @a('x", "select :a::b('); drop table x; --'", "select @a.b", "select @'a'", "select @`a`", "select @@a.b", "select a@b",
		"select @a@b", "select :a:b", "select : a", "select :'a'", "select :\"a\"", "select :::a", "select a:::b", "select a::'b'", "select a:[b]", "select ?:a", "select @.a",
		// Characters.
		"select größe", "select\u00a01", "select\u20281", "select 1\r; drop table x", "select 1\f", "select 1\v", "select 1\x00", "select 1\x1a", "select 1 \x7f", "\ufeffselect 1", "select\u2003drop",
		"select {fn now()}", "select 1 \\g", "select 1 \\; drop", "select 1\\", "ſelect 1", "\u212aill 1",
		// Commands of clients.
		"delimiter //", "DELIMITER ;;\nselect 1;;", "select 1\ndelimiter $\nx", "select 'a\nDelimiter //\n'", "select 1\ngo", "select 1\nGO 5", "select 1 go drop table x", "select 'a\ngo\nb'", "/*\ngo\n*/ select 1",
		"-- x\n\\! sh\nselect 1", "select 1\n\\! sh", "select 1\n:r x", "select 1\n!!sh", "select '\n:r x'", ".shell x", "source x", "system x", "copy t from stdin;\n1\n\\.", "copy t from stdin", "COPY t (a) FROM STDIN",
		// Statements that do not begin with a verb that is known, or do not end.
		"", ";", "()", "( )", "1", "'x'", "xp_cmdshell 'x'", "sp_who", "frobnicate t", "= 1", ". 1", "$1", "@a", "?", "select 1 )", "select (1", "select (1; drop table x)", "( select 1; select 2 )", "with", "with a",
		"with a as (values (1))", "select a . b", "select a. drop", "select a .drop", "select a..b", "select .drop", "select (a).drop", "select select.drop",
	} {
		if got := sqlVerbsOf(query); !slices.Equal(got, []string{unparsable}) {
			t.Errorf("%q: %q", query, got)
		}
	}
}

// POL-09, POL-16: the verbs of all databases are seen in the midst of a select.
func TestSQLVerbsInside(t *testing.T) {
	for query, want := range map[string]string{
		"with a as (delete from x returning *), b as (update y set z = 1 returning *), c as (insert into d values (1) returning *) select 1": "delete update insert select",
		"with a as (merge into x using y on true when matched then update set z = 1 returning *) select 1":                                   "merge update select",
		"explain (analyze, verbose) delete from x":                     "explain analyze delete",
		"select * into foo from x":                                     "select into",
		"select 1 into dumpfile 'x'":                                   "select into dumpfile",
		"select 1 into @a":                                             "select into",
		"select * from t for update":                                   "select update",
		"select * from t lock in share mode":                           "select lock",
		"select 1 exec sp_who":                                         "select exec",
		"select 1 drop table x":                                        "select drop",
		"select(1)drop table x":                                        "select drop",
		"select 1/**/drop/**/table x":                                  "select drop",
		"select 1\r\nupdate t set a = 1":                               "select update",
		"select 1 update t set a = 1 set rowcount 0":                   "select update set",
		"select * into foo from t insert into x values (1)":            "select into insert",
		"insert into x values (1) select * into y from z":              "insert into",
		"select 1 insert(a)":                                           "select insert",
		"select 1, insert(a, 1, 2, 'b'), truncate(1, 2) from t":        "select",
		"select a from t where replace(a, 'x', 'y') = 'z'":             "select",
		"explain replace(a)":                                           "explain replace",
		"insert or replace into x values (1)":                          "insert replace",
		"replace into x values (1)":                                    "replace",
		"insert x set a = 1":                                           "insert",
		"select @drop, :delete, `truncate`, [alter], a[update] from t": "select drop delete truncate alter update",
		"select $1::numeric, a::text, -.5, 1.5e-3, a->>'b', a @> '{}', a @@ b, ?1 from t": "select",
		"select @a := 1": "select",
		"select \"a\".\"b\", [a].[b], `a`.`b`, t.* from s.t": "select",
		"select $1::drop":                         "select drop",
		"kill 1":                                  "kill",
		"handler t open":                          "handler",
		"load data infile 'x' into table t":       "load into",
		"attach 'x' as y":                         "attach",
		"vacuum into 'x'":                         "vacuum into",
		"select 1; pragma writable_schema = 1":    "select pragma",
		"copy (delete from x returning 1) to 'y'": "copy delete",
		"prepare p as delete from x":              "prepare delete",
		"declare c cursor for select 1":           "declare",
		"waitfor delay '1'":                       "waitfor",
		"select 1 reconfigure":                    "select reconfigure",
		"if 1 = 1 drop table x":                   "if drop",
		"begin drop table x end":                  "begin drop",
		"select 1 disable trigger x on y":         "select disable",
		"select 'größe', '’' -- it's\n":           "select",
		"select a$b, _c from t":                   "select",
		"select pg_sleep(1)":                      "select", // what functions do is not told
	} {
		if got := strings.Join(sqlVerbsOf(query), " "); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

// dialect reads SQL as one kind of database could, far more simply than
// sqlVerbsOf: only quotes and comments, and every combination of the habits in
// which databases differ.
type dialect uint

const (
	backslashes dialect = 1 << iota
	dollars
	nested
	hashes
	spacedDashes
	executed
	brackets
	backticks
	sqliteNames
	dialects
)

// code returns what a dialect does not take for a text, a quoted name or a comment.
func (d dialect) code(q string) string {
	var b strings.Builder
	for i := 0; i < len(q); {
		rest := q[i:]
		n := 0
		switch {
		case q[i] == '\'' || q[i] == '"' || q[i] == '`' && d&backticks != 0:
			n = d.quote(rest, q[i])
		case q[i] == '[' && d&brackets != 0:
			n = until(rest, "]")
		case q[i] == '$' && d&dollars != 0:
			if tag := dollarTag.FindString(rest); tag != "" && (i == 0 || !strings.ContainsRune(letters, rune(q[i-1]))) {
				n = len(tag) + until(rest[len(tag):], tag)
			}
		case strings.IndexByte("$@:#", q[i]) >= 0 && d&sqliteNames != 0:
			if v := sqliteVariable.FindString(rest); v != "" {
				b.WriteString(strings.TrimRight(v[:strings.IndexByte(v, '(')], ":") + " ")
				n = len(v)
			}
		case strings.HasPrefix(rest, "--") && (d&spacedDashes == 0 || len(rest) == 2 || rest[2] <= ' '), q[i] == '#' && d&hashes != 0:
			n = until(rest, "\n")
		case strings.HasPrefix(rest, "/*!") && d&executed != 0:
			b.WriteByte(' ')
			i += 3
			continue
		case strings.HasPrefix(rest, "/*"):
			n = d.comment(rest)
		}
		if n == 0 {
			b.WriteByte(q[i])
			i++
			continue
		}
		b.WriteByte(' ')
		i += n
	}
	return b.String()
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789$"

var (
	dollarTag      = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z_0-9]*)?\$`)
	sqliteVariable = regexp.MustCompile(`^[$@:#][A-Za-z0-9_$:]+\([^)\s]*\)?`)
	sqlColumn      = regexp.MustCompile(`(^|[^A-Za-z0-9_$@.])[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)*\.$`)
	sqlWord        = regexp.MustCompile(`[A-Za-z0-9_$@]+`)
)

func until(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i + len(end)
	}
	return len(s)
}

func (d dialect) quote(s string, quote byte) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && d&backslashes != 0:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return len(s)
}

func (d dialect) comment(s string) int {
	for i, depth := 2, 1; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "*/"):
			i++
			if depth--; depth == 0 || d&nested == 0 {
				return i + 1
			}
		case strings.HasPrefix(s[i:], "/*"):
			i++
			depth++
		}
	}
	return len(s)
}

// missed returns a dangerous word that some dialect sees as a word of its own and
// that the verbs do not name.
func missed(query string, verbs []string) string {
	var matter dialect // the habits that make a difference to this query
	for i, signs := range []string{`\`, "$", "/", "#", "-", "!", "[", "`", "$@:#"} {
		if strings.ContainsAny(query, signs) {
			matter |= 1 << i
		}
	}
	for d := range dialects {
		if d&^matter != 0 {
			continue
		}
		code := d.code(query)
		for _, at := range sqlWord.FindAllStringIndex(code, -1) {
			word := strings.ToLower(strings.TrimLeft(code[at[0]:at[1]], "0123456789$@"))
			switch word {
			case "insert", "truncate":
				if strings.HasPrefix(code[at[1]:], "(") {
					continue
				}
			case "drop", "delete", "update", "merge", "alter", "create", "grant", "exec", "execute", "call", "copy", "attach", "pragma", "vacuum", "load", "outfile", "kill":
			case "into":
				if slices.ContainsFunc(verbs, func(v string) bool { return v == "insert" || v == "replace" || v == "merge" || v == "upsert" }) {
					continue
				}
			default:
				continue
			}
			if slices.Contains(verbs, word) || sqlColumn.MatchString(code[:at[0]]) {
				continue
			}
			return word
		}
	}
	return ""
}

// The second reader finds what the first one of this package did not.
func TestMissed(t *testing.T) {
	for _, query := range []string{
		"select '{a}'::text[] <@$${'}$$; delete from users; --'", "select 1into foo", "select 1. drop table x", `select 'a\'; drop table x; --'`, "select /*! drop table x */ 1",
		"select /* /* */ drop table x -- */", "select ` '`; drop table x; --'", "select [']; drop table x; --']", "select :a('); drop table x; --'", "select 1 # '\n; drop table x; -- '",
	} {
		if missed(query, []string{"select"}) == "" {
			t.Errorf("%q: nothing is missed", query)
		}
	}
	if word := missed("select t.update, 'drop' -- delete\nfrom t", []string{"select"}); word != "" {
		t.Error(word)
	}
}

// POL-09, POL-16: whatever is accepted, no statement after it is hidden, no white
// space or comment takes a verb away, and no dialect sees a verb that is not told.
func FuzzSQLVerbs(f *testing.F) {
	for _, s := range []string{
		"select 1", "select 'a''b'; drop x", "with a as (select 1) delete from b", "/* x */ -- y\nselect", "select [a] from \"b\"", "$$", "select a <@ $1::text, :b, @c, `d`, t.update -- x\n from t",
		"select '{a}'::text[] <@$${'}$$; delete from users; --'", "select 1. into foo", "select 1e5, .5, insert(1)", "select 'a\\'", "insert into x values (1) on conflict do update set a = 1",
	} {
		f.Add(s)
	}
	f.Fuzz(checkSQL)
}

func checkSQL(t *testing.T, query string) {
	verbs := sqlVerbsOf(query)
	if len(verbs) == 0 {
		t.Fatal("no verb")
	}
	if verbs[0] == unparsable {
		return
	}
	if slices.Contains(verbs, unparsable) {
		t.Fatalf("%q: partly unparsable: %q", query, verbs)
	}
	for _, more := range []string{"; drop table t", ";drop table t", "\n; drop table t", " drop table t", "\ndrop table t"} {
		if got := sqlVerbsOf(query + more); got[0] != unparsable && !slices.Contains(got[len(verbs)-1:], "drop") && !strings.HasPrefix(more, " ") {
			t.Fatalf("%q: with %q: %q", query, more, got)
		}
	}
	for _, wrapped := range []string{
		" " + query, "\n\t" + query + "\n", "/* c */" + query, "-- c\n" + query, query + "\n-- c", query + "\n/* c */", strings.ReplaceAll(query, " ", "/**/"),
	} {
		if got := sqlVerbsOf(wrapped); got[0] != unparsable && !slices.Equal(got, verbs) {
			t.Fatalf("%q: %q, but %q: %q", query, verbs, wrapped, got)
		}
	}
	if word := missed(query, verbs); word != "" {
		t.Fatalf("%q: %q, but some database sees %s", query, verbs, word)
	}
}

// POL-09, POL-16: the invariants hold for queries made of the pieces that have
// confused readers before, which bytes at random seldom are.
func TestSQLVerbsFromPieces(t *testing.T) {
	pieces := []string{
		"select ", "1", "1.", ".", " ", "\n", "'", "''", "\"", "`", "[", "]", "$", "$$", "$1", "$x$", "@", "@@", "@a", ":", "::", ":a", "(", ")", ";", "--", "-- ", "/*", "*/", "/*!", "#", "\\",
		"e", "E", "n", "u&", "a", "t.", "into ", "drop ", "delete", "insert", "replace(", "update ", "set ", "from t", ",", "=", "-", "*", "?", "x'", "\r", "go", "with a as ", "or ", "{", "&",
	}
	random := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 15_000 {
		var b strings.Builder
		b.WriteString("select ")
		for range 1 + random.IntN(9) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		if sqlVerbsOf(b.String())[0] != unparsable {
			accepted++
			checkSQL(t, b.String())
		}
	}
	if accepted < 500 {
		t.Errorf("only %d were accepted: the pieces test nothing", accepted)
	}
}
