package ledger

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

func TestCheckpointIsANoteThatOthersRead(t *testing.T) {
	l := aDay(t)
	at := time.Date(2026, 11, 20, 11, 0, 0, 5000, time.FixedZone("CET", 3600))
	text, err := testKey.Checkpoint(l.tree.Head(), at)
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(testKey.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open(text, note.VerifierList(v))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s\n%d\n%s\ntime 2026-11-20T10:00:00.000005Z\n", testOrigin, len(l.lines), b64(l.tree.Root()))
	if n.Text != want || len(n.Sigs) != 1 || n.Sigs[0].Name != testOrigin {
		t.Errorf("got %q, want %q", n.Text, want)
	}
	c, err := ParseCheckpoint(text, secondKey.PublicKey(), testKey.PublicKey(), testKey.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	if c.Origin != testOrigin || c.Head != l.tree.Head() || !c.Time.Equal(at) || len(c.Keys) != 1 || c.Keys[0] != testKey.PublicKey() || !bytes.Equal(c.Text, text) {
		t.Errorf("read back %+v", c)
	}
}

// Checkpoints of other logs' software have no time, or lines of their own, and
// more signatures: of witnesses, in algorithms that we do not know.
func TestCheckpointOfOthers(t *testing.T) {
	root := b64(new(Frontier).Root())
	for _, body := range []string{
		"%s\n0\n%s\n",
		"%s\n0\n%s\nanything at all\ntime-line 5\n",
	} {
		signed, err := note.Sign(&note.Note{Text: fmt.Sprintf(body, testOrigin, root)}, testKey.note)
		if err != nil {
			t.Fatal(err)
		}
		witness := base64.StdEncoding.EncodeToString(append([]byte{1, 2, 3, 4}, make([]byte, 72)...))
		signed = append(signed, "— witness.example/w1 "+witness+"\n"...)
		c, err := ParseCheckpoint(signed, testKey.PublicKey())
		if err != nil || !c.Time.IsZero() || c.Size != 0 {
			t.Errorf("%q: %v, %+v", body, err, c)
		}
	}
}

func TestParseCheckpointRefuses(t *testing.T) {
	l := aDay(t)
	good := l.sign(t, 5)
	root := b64(l.head(t, 5).Root)
	vkey := testKey.PublicKey()
	if _, err := ParseCheckpoint(good, vkey); err != nil {
		t.Fatal(err)
	}
	other, err := NewKey("witness.example/w1", strings.NewReader(strings.Repeat("w", 32)))
	if err != nil {
		t.Fatal(err)
	}
	signed := func(body string, by *Signer) []byte {
		text, err := note.Sign(&note.Note{Text: body}, by.note)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	body := testOrigin + "\n5\n" + root + "\n"
	end := bytes.LastIndexByte(good, '=')
	for name, text := range map[string][]byte{
		"empty":                 nil,
		"no signature":          []byte(body),
		"an unknown key":        l.sign(t, 5, secondKey),
		"only a witness":        signed(body, other),
		"a changed size":        bytes.Replace(good, []byte("\n5\n"), []byte("\n6\n"), 1),
		"a changed root":        bytes.Replace(good, []byte(root), []byte(b64(Hash{})), 1),
		"two lines":             signed(testOrigin+"\n5\n", testKey),
		"an empty line":         signed(testOrigin+"\n5\n"+root+"\n\n\nx\n", testKey),
		"a size with a plus":    signed(testOrigin+"\n+5\n"+root+"\n", testKey),
		"a size with a zero":    signed(testOrigin+"\n05\n"+root+"\n", testKey),
		"a negative size":       signed(testOrigin+"\n-5\n"+root+"\n", testKey),
		"a size beyond 2^53":    signed(testOrigin+"\n9223372036854775807\n"+root+"\n", testKey),
		"a size of words":       signed(testOrigin+"\nfive\n"+root+"\n", testKey),
		"a short root":          signed(testOrigin+"\n5\nAAAA\n", testKey),
		"a root with stray bit": signed(testOrigin+"\n5\n"+strings.Repeat("A", 42)+"B=\n", testKey),
		"a time in words":       signed(body+"time today\n", testKey),
		"a time elsewhere":      signed(body+"time 2026-11-20T10:00:00+01:00\n", testKey),
		"a stray bit":           append(append(bytes.Clone(good[:end-1]), good[end-1]+1), good[end:]...),
		"too long":              append(bytes.Clone(good), strings.Repeat("x", maxCheckpoint)...),
	} {
		if c, err := ParseCheckpoint(text, vkey, other.PublicKey()); !errors.Is(err, ErrCheckpoint) {
			t.Errorf("%s: %v, %+v", name, err, c)
		}
	}
	if _, err := ParseCheckpoint(good); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("without keys: %v", err)
	}
	if _, err := ParseCheckpoint(good, "nonsense"); !errors.Is(err, ErrKey) {
		t.Errorf("with nonsense for a key: %v", err)
	}
}

func TestSignHeadRefuses(t *testing.T) {
	other, err := NewKey("another.example/log", strings.NewReader(strings.Repeat("w", 32)))
	if err != nil {
		t.Fatal(err)
	}
	for name, sign := range map[string]func() ([]byte, error){
		"no key":         func() ([]byte, error) { return SignHead(Head{}, epochTime) },
		"another origin": func() ([]byte, error) { return SignHead(Head{}, epochTime, testKey, other) },
		"no time":        func() ([]byte, error) { return testKey.Checkpoint(Head{}, time.Time{}) },
		"negative":       func() ([]byte, error) { return testKey.Checkpoint(Head{Size: -1}, epochTime) },
		"too large":      func() ([]byte, error) { return testKey.Checkpoint(Head{Size: MaxSize + 1}, epochTime) },
	} {
		if text, err := sign(); err == nil {
			t.Errorf("%s: signed %s", name, text)
		}
	}
}

func TestKeys(t *testing.T) {
	again, err := ParseKey(testKey.Secret())
	if err != nil || again.PublicKey() != testKey.PublicKey() || again.Origin() != testOrigin {
		t.Errorf("read back %v, %v", again, err)
	}
	secret := testKey.Secret()[strings.LastIndex(testKey.Secret(), "+")+1:]
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(verb, testKey); strings.Contains(s, secret) || s != testKey.PublicKey() {
			t.Errorf("%s prints %s", verb, s)
		}
	}
	// A key whose base64 holds a plus sign is read like any other.
	plus := 0
	for i := range 200 {
		k, err := NewKey(testOrigin, strings.NewReader(fmt.Sprintf("%032d", i)))
		if err != nil {
			t.Fatal(err)
		}
		_, vsecret, _ := strings.Cut(k.Secret(), testOrigin)
		plus += strings.Count(vsecret, "+") - 2
		text, err := k.Checkpoint(Head{}, epochTime)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseCheckpoint(text, k.PublicKey()); err != nil {
			t.Fatalf("key %d: %v", i, err)
		}
	}
	t.Logf("%d plus signs in the secrets", plus)
	for name, bad := range map[string]string{
		"empty":         "",
		"half":          testKey.Secret()[:40],
		"another hash":  strings.Replace(testKey.Secret(), "+PRIVATE", "", 1)[:len("PRIVATE+KEY+")+len(testOrigin)+1] + "00000000" + testKey.Secret()[len("PRIVATE+KEY+")+len(testOrigin)+9:],
		"a public key":  testKey.PublicKey(),
		"a short key":   "PRIVATE+KEY+x+00000000+AAAA",
		"not base64":    "PRIVATE+KEY+x+00000000+!!!!",
		"another title": strings.Replace(testKey.Secret(), "PRIVATE", "SECRET", 1),
	} {
		k, err := ParseKey(bad)
		if !errors.Is(err, ErrKey) || k != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && bad != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error shows the key", name)
		}
	}
	if _, err := NewKey("with space", strings.NewReader(strings.Repeat("x", 32))); !errors.Is(err, ErrKey) {
		t.Errorf("a name with a space: %v", err)
	}
	if _, err := NewKey(testOrigin, strings.NewReader("short")); err == nil {
		t.Error("a key without randomness")
	}
}
