package policy

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

func scopeOf(t testing.TB, src string) *scope {
	t.Helper()
	return mustParse(t, "version: 1\nscopes: {s: "+src+"}\n").scopes["s"]
}

// POL-01, POL-02, POL-03: "no" is an answer, "?" is a path that has none, which
// no allow matches and every guard refuses. What a link points to is not judged:
// the last cases say so.
func TestInside(t *testing.T) {
	data := scopeOf(t, `{paths: ["/data/**", "/home/john/**", "/etc/hosts"], except: ["**/.env*", "**/.git/**", "/data/secret"]}`)
	repo := scopeOf(t, `{paths: ["${workspace}/**"], except: ["**/.env*", "**/.git/**"]}`)
	src := scopeOf(t, `{paths: ["${workspace}/src/*.go", "${workspace}/docs/**/*.md"]}`)
	for _, c := range []struct {
		scope      *scope
		path, root string
		want       string
	}{
		{data, "/data/x", "", "yes"},
		{data, "/data", "", "yes"},
		{data, "/data/a/b/c.txt", "", "yes"},
		{data, "/data//a/./b", "", "yes"},
		{data, "/data/a/../b", "", "yes"},
		{data, "/etc/hosts", "", "yes"},
		{data, "/etc/hosts/x", "", "no"},
		{data, "/data/../prod", "", "no"},
		{data, "/data//../prod", "", "no"},
		{data, "/data/./../prod", "", "no"},
		{data, "/data/../../data/../etc/passwd", "", "no"},
		{data, "/..", "", "no"},
		{data, "/database/x", "", "no"},
		{data, "/home/johnathan/x", "", "no"},
		{data, "/home/john", "", "yes"},
		{data, "/DATA/x", "", "?"},
		{data, "/Data/x", "", "?"},
		{data, "/data/.ENV", "", "?"},
		{data, "/data/.en\u0076", "", "no"},
		{data, "/data/.gıt/config", "", "yes"}, // a dotless i is another letter
		{data, "/data/\u212aelvin", "", "?"},
		{data, "/data/%2e%2e/prod", "", "?"},
		{data, "/data/%2E./prod", "", "?"},
		{data, "/data/100%", "", "yes"},
		{data, "/data/%252e%252e/prod", "", "?"},
		{data, "/data/%u002e%u002e/prod", "", "?"},
		{data, "/data/%%32e/prod", "", "?"},
		{data, "//data/x", "", "?"},
		{data, "//prod/share/x", "", "?"},
		{data, "///data/x", "", "?"},
		{data, "/data/\u2024\u2024/prod", "", "?"},
		{data, "/data/．．/prod", "", "?"},
		{data, "/data/..／prod", "", "?"},
		{data, "/data/..\u2215prod", "", "?"},
		{data, "/data/.ｅnv", "", "?"},
		{data, "/data/.en?", "", "?"},
		{data, "/data/.e*", "", "?"},
		{data, "/data/{x,../../etc/passwd}", "", "?"},
		{data, "/data/..;/prod", "", "?"},
		{data, "/data/[id]/{{name}}/$id.tsx", "", "yes"},
		{data, "$HOME/.ssh/id", "/data", "?"},
		{data, "-rf", "/data", "?"},
		{data, "|sh", "/data", "?"},
		{data, `/data/..\prod`, "", "?"},
		{data, `\data\..\prod`, "", "?"},
		{data, "/data/x.", "", "?"},
		{data, "/data/x /y", "", "?"},
		{data, "/data/x ", "", "?"},
		{data, "/data/.../y", "", "?"},
		{data, "/data/x\x00.txt", "", "?"},
		{data, "/data/x\ny", "", "?"},
		{data, "/data/.e\u200bnv", "", "?"},
		{data, "/data/caf\u0065\u0301", "", "?"},
		{data, "/data/caf\u00e9", "", "yes"},
		{data, "/data/\xff", "", "?"},
		{data, "/data/secret::$DATA", "", "?"},
		{data, "C:/data/x", "", "?"},
		{data, "/data/GIT~1/config", "", "?"},
		{data, "~/x", "/data", "?"},
		{data, "/data/~root/x", "", "?"},
		{data, "/data/backup~", "", "yes"},
		{data, "", "/data", "?"},
		{data, strings.Repeat("/data", 1000), "", "?"},
		{data, "file:///data/x", "/data", "?"},
		{data, "/data/.env", "", "no"},
		{data, "/data/.env.local", "", "no"},
		{data, "/data/.env/inner", "", "no"},
		{data, "/data/a/.git", "", "no"},
		{data, "/data/a/.git/hooks/x", "", "no"},
		{data, "/data/.github/x", "", "yes"},
		{data, "/data/secret", "", "no"},
		{data, "/data/secret/x", "", "no"},
		{data, "/data/secrets", "", "yes"},
		{data, "x", "/data", "yes"},
		{data, "../etc/hosts", "/data", "yes"},
		{data, "../etc/passwd", "/data", "no"},
		{data, "x", "", "?"},

		{repo, "src/main.go", "/srv/shop", "yes"},
		{repo, ".", "/srv/shop", "yes"},
		{repo, "/srv/shop/src/main.go", "/srv/shop", "yes"},
		{repo, "/srv/shop", "/srv/shop/", "yes"},
		{repo, "/srv/shopping/x", "/srv/shop", "no"},
		{repo, "../shop/x", "/srv/shop", "yes"},
		{repo, "../other", "/srv/shop", "no"},
		{repo, "a/../../x", "/srv/shop", "no"},
		{repo, ".env", "/srv/shop", "no"},
		{repo, "/SRV/shop/x", "/srv/shop", "?"},
		{repo, "src/main.go", "", "?"},
		{repo, "/srv/shop/x", "", "?"},
		{repo, "/srv/shop/x", "/", "?"},
		{repo, "/srv/shop/x", "srv", "?"},
		{repo, "/srv/shop/x", "/srv/%2e%2e", "?"},

		{src, "src/a.go", "/w", "yes"},
		{src, "src/a/b.go", "/w", "no"},
		{src, "src/.go", "/w", "yes"},
		{src, "docs/a.md", "/w", "yes"},
		{src, "docs/x/y/a.md", "/w", "yes"},
		{src, "docs/x/y/a.mdx", "/w", "no"},

		{data, "/data/link-to-prod/x", "", "yes"},
		{data, "/data/link/../x", "", "yes"},
	} {
		in, why := c.scope.holds(c.path, c.root)
		got := map[bool]string{true: "yes", false: "no"}[in]
		if why != "" {
			got = "?"
			if in {
				t.Errorf("%q: in, and yet %s", c.path, why)
			}
			for _, word := range []string{"prod", "shop", "john"} {
				if strings.Contains(string(why), word) {
					t.Errorf("the reason holds the value: %s", why)
				}
			}
		}
		if got != c.want {
			t.Errorf("%q with root %q: %s %s, want %s", c.path, c.root, got, why, c.want)
		}
	}
}

// POL-10: a URL has one host for everybody, or none.
func TestHost(t *testing.T) {
	for u, want := range map[string]string{
		"https://api.github.com/x?y=z#@evil": "api.github.com",
		"https://API.GitHub.com:443/x":       "api.github.com",
		"http://example.com":                 "example.com",
		"ws://example.com?x":                 "example.com",
		"https://bücher.example/":            "xn--bcher-kva.example",
		"https://xn--bcher-kva.example":      "xn--bcher-kva.example",
		"https://аpple.com":                  "xn--pple-43d.com", // Cyrillic а
		"http://127.0.0.1:8080/":             "127.0.0.1",
		"http://[2001:DB8::1]:80/":           "2001:db8::1",
		"http://a_b.example":                 "a_b.example",
		"http://1.example":                   "1.example",
		"ssh://git.example:65535/x":          "git.example",

		"file://api.github.com/etc/passwd":  "?",
		"javascript://api.github.com/%0ax":  "?",
		"data://api.github.com/x":           "?",
		"gopher://api.github.com/x":         "?",
		"postgres://db.example/x?host=evil": "?",
		"http://api.github.com#@evil":       "?",
		"http://api.github.com?@evil":       "?",
		"http://api.github.com:65616/":      "?",
		"http://api。github.com/":            "?",
		"http://ａpi.github.com/":            "?",
		"http://ⓐpi.github.com/":            "?",
		"http://api.github.com/\u0085x":     "?",
		"http://api.github.com/\u2028x":     "?",

		"https://api.github.com@evil.example/":        "?",
		"https://a:b@api.github.com/":                 "?",
		`http://example.com\@evil.example`:            "?",
		"http://example.com\t.evil.example":           "?",
		"http://example.com\n":                        "?",
		" https://example.com":                        "?",
		"https://example.com./":                       "?",
		"https://example..com/":                       "?",
		"https://.example.com/":                       "?",
		"https://-x.example.com/":                     "?",
		"https://exa%6dple.com/":                      "?",
		"http://0x7f.1/":                              "?",
		"http://2130706433/":                          "?",
		"http://127.1/":                               "?",
		"http://0177.0.0.1/":                          "?",
		"http://127.0.0.0x1/":                         "?",
		"http://[::ffff:127.0.0.1]/":                  "?",
		"http://[fe80::1%25eth0]/":                    "?",
		"http://[::1/":                                "?",
		"http://[127.0.0.1]/":                         "?",
		"http://[::1]x/":                              "?",
		"http://example.com:80x/":                     "?",
		"http://example.com:123456/":                  "?",
		"https:///path":                               "?",
		"https:example.com":                           "?",
		"//example.com":                               "?",
		"example.com":                                 "?",
		"1http://example.com":                         "?",
		"git@github.com:x/y":                          "?",
		"ht!tp://example.com":                         "?",
		"":                                            "?",
		"https://faß.example":                         "?",
		"https://exa\u00admple.com":                   "?",
		"https://\u0301a.example":                     "?",
		"https://" + strings.Repeat("a", 64):          "?",
		"https://" + strings.Repeat("a.", 130):        "?",
		"https://" + strings.Repeat("a.", 127) + "aa": "?",
		"https://x/" + strings.Repeat("a", 9000):      "?",
	} {
		host, why := hostOf(u)
		if why != "" {
			host = "?"
		}
		if host != want {
			t.Errorf("%q: %s (%s), want %s", u, host, why, want)
		}
	}
}

// POL-10: domains are compared by labels.
func TestHostIn(t *testing.T) {
	s := scopeOf(t, `{domains: ["api.github.com", "*.example.com", "bücher.example", "10.0.0.1", "[::1]"], except: ["admin.example.com", "*.internal.example.com"]}`)
	for u, want := range map[string]string{
		"https://api.github.com/":           "yes",
		"https://www.example.com/":          "yes",
		"https://a.b.example.com/":          "yes",
		"https://xn--bcher-kva.example/":    "yes",
		"http://10.0.0.1/":                  "yes",
		"http://[::1]/":                     "yes",
		"https://example.com/":              "no",
		"https://evil-example.com/":         "no",
		"https://example.com.evil.net/":     "no",
		"https://evilexample.com/":          "no",
		"https://github.com/":               "no",
		"https://x.api.github.com/":         "no",
		"https://admin.example.com/":        "no",
		"https://x.internal.example.com/":   "no",
		"https://internal.example.com/":     "yes",
		"https://www.example.com@evil.net/": "?",
		"https://www.example.com./":         "?",
	} {
		in, why := s.hosts(u)
		got := map[bool]string{true: "yes", false: "no"}[in]
		if why != "" {
			got = "?"
		}
		if got != want {
			t.Errorf("%q: %s (%s), want %s", u, got, why, want)
		}
	}
}

// POL-04, POL-05: one simple command, or no words at all.
func TestArgv(t *testing.T) {
	var shells shellParsers
	for command, want := range map[string][]string{
		"git status":                    {"git", "status"},
		"  git   status ":               {"git", "status"},
		"git\tstatus":                   {"git", "status"},
		"go vet ./...":                  {"go", "vet", "./..."},
		`git commit -m "a b"`:           {"git", "commit", "-m", "a b"},
		`git commit -m 'a $b; c'`:       {"git", "commit", "-m", "a $b; c"},
		`git commit -m a\ b`:            {"git", "commit", "-m", "a b"},
		`echo "a \"b\" \\ \$c \d"`:      {"echo", `a "b" \ $c \d`},
		`echo ""`:                       {"echo", ""},
		`echo a"b"'c'`:                  {"echo", "abc"},
		"git log --format=%h":           {"git", "log", "--format=%h"},
		"git -c core.pager=evil log":    {"git", "-c", "core.pager=evil", "log"}, // POL-04: exact lists do not hold it
		"git --exec-path=/tmp/x status": {"git", "--exec-path=/tmp/x", "status"},
		"echo grüße":                    {"echo", "grüße"},
		"g''it status":                  {"git", "status"},
		`\git status`:                   {"git", "status"},
		"echo if":                       {"echo", "if"},
		"eval x":                        {"eval", "x"},
		`find . -name "*.go"`:           {"find", ".", "-name", "*.go"},
	} {
		words, why := shells.argv(command)
		if why != "" || !slices.Equal(words, want) {
			t.Errorf("%q: %q (%s), want %q", command, words, why, want)
		}
	}
	for _, command := range []string{
		"", " ", "git status; rm -rf ~", "git status;", "git status && rm x", "git status || rm x", "git status | sh", "git status |& sh",
		"git status & rm x", "git status &", "git status\nrm x", "git status\n", "git status\rrm x", "git \x00status", "git `rm x`", "git $(rm x)",
		`git "$(rm x)"`, "git \"`rm x`\"", "git > /etc/passwd", "git >> x", "git < x", "git <<< x", "git 2>&1", "git <(rm x)", "git >(rm x)",
		"cat <<EOF\nx\nEOF", "git${IFS}status", "git $HOME", `git "$HOME"`, "git ${x:-y}", "git $((1+1))", "git *", "git a?", "git [ab]", "git {a,b}", "git {1..3}",
		"git ~", "git ~root", "make FOO=~/x", "FOO=bar git status", "FOO=bar", "FOO+=bar git", "! git status", "(git status)", "{ git status; }",
		"if true; then git; fi", "while :; do git; done", "for x in y; do git; done", "case x in esac", "function f { git; }", "f() { git; }", "time git status",
		"coproc git", "[[ -f x ]]", "((1+1))", "declare x=1", "export X=1", "let x=1", "local x", "readonly x", "select x in y; do z; done", "git status # comment",
		"# comment", "git $'a\\nb'", `git $"x"`, "git 'a", `git "a`, `git a\`, "git a\\\nb", "=ls", "git =ls", "git ^x", "!git", "!!", `git "!x"`, "git %1&", "git @(a|b)",
		"git +(a)", "git \u202estatus", "git st\u200batus", "git\u00a0status", "\"\" x", "a=b=c", "env X=1 git; y", "x[1]=2", "git a\x0bb", "git a\x1b[2J",
		strings.Repeat("a", maxCommand+1), ": ; " + strings.Repeat(": ; ", 60) + "rm x", // POL-05
	} {
		if words, why := shells.argv(command); why == "" {
			t.Errorf("%q has the words %q", command, words)
		}
	}
}

// POL-06: commands that run others are ordinary words to a parser, so a list of
// safe commands is a list of whole argument vectors. None of these abuses is
// matched by the lists that people write for the harmless use.
func TestArgvListsAreExact(t *testing.T) {
	p := mustParse(t, `version: 1
rules:
  - id: safe
    tool: shell.run
    when: >-
      argv(args.command) in [["git", "status"], ["git", "log"], ["find", ".", "-name", "x"], ["tar", "tf", "a.tar"], ["awk", "{print $1}", "f"],
      ["sed", "-n", "1p", "f"], ["env"], ["xargs"], ["vim", "f"], ["less", "f"], ["man", "ls"], ["ssh", "host"], ["make"], ["go", "test"], ["npm", "test"],
      ["python3", "-V"], ["rsync", "a", "b"], ["zip", "a.zip", "b"], ["tee", "f"], ["dd"], ["cp", "a", "b"], ["nice"], ["timeout", "1"], ["watch", "ls"], ["sort", "f"]]
    allow: {tier: R1}
`)
	for _, command := range []string{
		"find . -name x -exec rm {} +", `find . -name x -exec sh -c id \;`, "find . -delete", "find . -fprintf /etc/cron.d/x y", "find . -name x -ok sh",
		"tar tf a.tar --to-command=sh", "tar cf /dev/null a --checkpoint=1 --checkpoint-action=exec=sh", "tar -I sh tf a.tar", "tar tf a.tar --use-compress-program=sh",
		`awk 'BEGIN{system("id")}'`, `awk 'BEGIN{print "x" > "/etc/x"}'`, "awk -f evil f", "gawk '@load \"filefuncs\"'", `mawk 'BEGIN{"id"|getline}'`,
		"sed e f", "sed '1e id' f", "sed -n '1w /etc/x' f", "sed -i s/a/b/ f", "sed -f evil f", "sed -n 1p f -s --expression=1e",
		"xargs sh", "xargs -a f sh -c", "env sh", "env -S 'sh -c id'", "env X=.. git status", "env -i sh", "git -c core.pager=sh log", "git -c core.sshCommand=sh fetch",
		"git -C /tmp status", "git --git-dir=/tmp/x status", "git log --output=/etc/x", "git status --help", "git -p log", "git bisect run sh", "git submodule foreach sh",
		"git grep -O sh x", "git diff --ext-diff", "git clone ext::sh", "git rebase -x sh", "git config alias.x '!sh'", "git status .", "/usr/bin/git status", "./git status",
		"vim -c ':!sh' f", "vim f -c ':py import os'", "less f +!sh", "less -k x f", "man -P sh ls", "man -H sh ls", "ssh host -o ProxyCommand=sh", "ssh -o LocalCommand=sh host",
		"ssh host id", "make -f evil", "make --eval=x", "make SHELL=/tmp/x", "go test -exec sh", "go test -toolexec sh", "go run evil.go", "npm test --script-shell=sh", "npm exec x",
		"python3 -c 'import os'", "python3 -V -c x", "python3 -m http.server", "perl -e x", "ruby -e x", "node -e x", "php -r x", "lua -e x", "rsync -e sh a b", "rsync a b -e sh",
		"rsync --rsh=sh a b", "zip a.zip b -T -TT sh", "zip -TT sh a.zip b", "tee /etc/passwd f", "tee -a f", "dd of=/dev/sda", "dd if=x of=y", "cp a b /etc", "cp --backup=x a b",
		"nice sh", "timeout 1 sh", "timeout --foreground 1 sh", "watch -x sh", "watch ls -la", "sort -o /etc/x f", "sort --compress-program=sh f", "busybox sh", "strace sh", "ltrace sh",
		"gdb -batch -ex x", "nohup sh", "setsid sh", "stdbuf -o0 sh", "chroot / sh", "unshare sh", "nsenter sh", "sudo git status", "doas git status", "su -c id", "script -c sh",
		"expect -c x", "socat x exec:sh", "nc -e sh h 1", "curl -o /etc/x u", "wget -O /etc/x u", "wget --use-askpass=sh u", "tcpdump -z sh", "nmap --script=x", "mysql -e x",
		"sqlite3 f x", "psql -c x", "docker run x", "kubectl exec x", "crontab f", "at now", "batch", "systemctl edit x", "journalctl", "pip install x", "gem install x", "cargo run",
		"ed f", "ex f", "emacs --eval x", "nano -S x", "pico -s sh", "split --filter=sh f", "csplit f 1", "shuf -o x f", "install a b", "ln -s a b", "mv a b", "chmod u+s x", "busctl x",
		"openssl engine -t x", "ld.so x", "capsh --", "hping3", "ionice sh", "taskset 1 sh", "run-parts x", "rpm --eval x", "dpkg -i x", "apt-get changelog x", "facter x", "ansible x",
	} {
		v := p.Judge(mustCall(t, "shell.run", `{"command":`+quoted(command)+`}`), known)
		if v.Effect == Allow {
			t.Errorf("%q is allowed", command)
		}
	}
	for _, command := range []string{"git status", "git  log", "tar tf a.tar", `awk '{print $1}' f`, "env"} {
		if v := p.Judge(mustCall(t, "shell.run", `{"command":`+quoted(command)+`}`), known); v.Effect != Allow {
			t.Errorf("%q is not allowed: %v", command, v.Trace)
		}
	}
}

func quoted(s string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)
	return `"` + r.Replace(s) + `"`
}

func TestHidden(t *testing.T) {
	for _, r := range "azAZ09 ~!\n\täéßñàβд中あ한א🙂€—" {
		if IsHidden(r) {
			t.Errorf("%U is hidden", r)
		}
	}
	for _, r := range []rune{
		0, '\r', 0x1b, 0x7f, 0x85, 0x9b, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x1680, 0x17b4, 0x17b5, 0x180e, 0x2000, 0x200a, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f,
		0x2028, 0x2029, 0x202a, 0x202e, 0x202f, 0x205f, 0x2060, 0x2066, 0x2069, 0x2800, 0x3000, 0x3164, 0xe000, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0xfffd, 0xffff,
		0x1d173, 0xe0001, 0xe0041, 0xe0100, 0xe01ef, 0xf0000, 0x10ffff, 0xd800, 0x378,
	} {
		if !IsHidden(r) {
			t.Errorf("%U is not hidden", r)
		}
	}
	for _, set := range []*unicode.RangeTable{unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs, unicode.Variation_Selector} {
		for _, r16 := range set.R16 {
			if !IsHidden(rune(r16.Lo)) || !IsHidden(rune(r16.Hi)) {
				t.Errorf("%U or %U is not hidden", r16.Lo, r16.Hi)
			}
		}
		for _, r32 := range set.R32 {
			if !IsHidden(rune(r32.Lo)) || !IsHidden(rune(r32.Hi)) {
				t.Errorf("%U or %U is not hidden", r32.Lo, r32.Hi)
			}
		}
	}
	if HasHidden("plain\ntext\t") || !HasHidden("a\u202eb") || !HasHidden("a\xffb") {
		t.Error("HasHidden")
	}
}

func TestFold(t *testing.T) {
	for _, pair := range [][2]string{{"ABC", "abc"}, {"ſ", "s"}, {"S", "s"}, {"K", "k"}, {"\u212a", "k"}, {"É", "é"}, {"Σ", "ς"}, {"Ω", "ω"}} {
		if fold(pair[0]) != fold(pair[1]) {
			t.Errorf("%q and %q differ: %q, %q", pair[0], pair[1], fold(pair[0]), fold(pair[1]))
		}
	}
	if fold("a") == fold("b") {
		t.Error("fold")
	}
}

func TestNumbers(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "-0": 0, "1": 1_000_000, "19.99": 19_990_000, "0.000001": 1, "1e3": 1_000_000_000, "1E-6": 1, "9223372036854.775807": 9223372036854775807, "-2.5": -2_500_000,
		"1.10": 1_100_000, "000.5": 500_000, "0e999999": 0,
	} {
		if got, ok := millionths(s); !ok || got != want {
			t.Errorf("%s: %d, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "-", ".", "e5", "1e", "1x", "0.0000001", "9223372036854.775808", "1e13", "+1", "Inf", "NaN", "1e99999999999", "1_0", "0x1"} {
		if got, ok := millionths(s); ok {
			t.Errorf("%s: %d", s, got)
		}
	}
	for s, want := range map[string]int64{"0.0000001": 1, "0.1234561": 123457, "-0.1234561": -123457, "0.30000000000000004": 300001} {
		d, _ := parseDecimal(s)
		if got, exact, ok := d.millionths(); !ok || exact || got != want {
			t.Errorf("%s: %d %v %v", s, got, exact, ok)
		}
	}
	if d, _ := parseDecimal("9223372036854.7758071"); func() bool { _, _, ok := d.millionths(); return ok }() {
		t.Error("rounding up overflows")
	}
	for s, want := range map[string]bool{"0.1": true, "1.5": true, "1e-7": true, "0.1000000000000000055511151231257827": false, "1e-400": false, "1e999": false, "5e-324": true} {
		if _, ok := double(s); ok != want {
			t.Errorf("%s: %v", s, ok)
		}
	}
}

// The quick way through a command must not differ from the parser's.
func FuzzArgv(f *testing.F) {
	for _, s := range []string{"git status", "if x", "a b;c", "@x y", "time a", "a  b", "declare x", "exec a", "a:b c%d", "[ a ]", "x 1 2 3", "- a", "+x"} {
		f.Add(s)
	}
	var shells shellParsers
	f.Fuzz(func(t *testing.T, command string) {
		words, why := shells.argv(command)
		if (why == "") != (len(words) > 0) {
			t.Fatalf("%q: %q, %q", command, words, why)
		}
		if quick, ok := plainWords(command); ok {
			parsed, why := argvOf(syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)), command)
			if why != "" || !slices.Equal(quick, parsed) {
				t.Fatalf("%q: quick %q, parsed %q (%s)", command, quick, parsed, why)
			}
		}
		if why == "" {
			if strings.ContainsAny(command, "\n\r\x00;&|<>`") && !strings.ContainsAny(command, `'"\`) {
				t.Fatalf("%q has the words %q", command, words)
			}
		}
	})
}

func FuzzInside(f *testing.F) {
	for _, s := range []string{"/data/x", "/data/../prod", "a/../../b", "/data/%2e", "~", ".ENV", "/data/x.", "//data"} {
		f.Add(s, "/data")
		f.Add(s, "")
	}
	data := scopeOf(f, `{paths: ["/data/**", "${workspace}/a*b/**/c"], except: ["**/.env*"]}`)
	f.Fuzz(func(t *testing.T, path, root string) {
		in, why := data.holds(path, root)
		if in && why != "" {
			t.Fatal("in, and yet", why)
		}
		if in && (strings.Contains(path, `\`) || strings.ContainsAny(path, "\x00\n\r") || strings.Contains(strings.ToLower(path), "%2e")) {
			t.Fatalf("%q is inside", path)
		}
		if in && strings.HasPrefix(path, "/") && !strings.Contains(path, "/..") && !strings.HasPrefix(strings.ReplaceAll(path, "/.", ""), "/data") && root == "/data" && !strings.Contains(path, "//") {
			t.Fatalf("%q is inside", path)
		}
	})
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"https://api.github.com/", "http://a@b", "http://[::1]:1", "http://0x7f.1", "http://bücher.example", "http://a.b.:80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, u string) {
		host, why := hostOf(u)
		if (host == "") != (why != "") {
			t.Fatalf("%q: %q %q", u, host, why)
		}
		if why != "" {
			return
		}
		if again, why := canonicalHost(strings.TrimSpace(bracketed(host))); why != "" || again != host {
			t.Fatalf("%q: %q is not its own canonical form: %q %s", u, host, again, why)
		}
	})
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
