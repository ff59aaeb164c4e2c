// Package credential verifies who asks and who decides, and keeps what that
// takes: agent keys, human tokens, one-time sign-in links, browser sessions.
//
// A credential is a text of a class that can be told by its first letters:
//
//	aye_agent_<id>_<secret>   asks, never decides
//	aye_human_<id>_<secret>   decides, never asks
//	aye_signin_<id>_<secret>  starts one browser session, once
//	aye_session_<id>_<secret> is the cookie of a browser session
//
// The id (40 random bits) names the credential in lists and on the record; the
// secret has 256 random bits. Only the SHA-256 of the whole text is stored, and
// a credential is found by it, so neither a copy of the store nor the time an
// answer takes tells anything about a secret (API-08, API-09, OPS-09). Nothing in
// the text is believed before the lookup (TOK-07).
//
// What a credential may do is not in it. The holder is looked up in the
// [Directory] of configured agents and people at every use: who is no longer
// there is refused at once, whatever they hold (API-06).
//
// Adding, using up and ending a credential are events of the ledger, committed
// with the change. Failures are returned; who reports them knows the source and
// bounds how often.
//
// Not here: cookies, headers, HTTP; how strong a decision must be.
package credential

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// Class of a credential. The zero value is none.
type Class string

// Classes.
const (
	Agent   Class = "agent"
	Human   Class = "human"
	Link    Class = "signin"
	Session Class = "session"
)

// Errors of credentials. None says more than a caller may know.
var (
	ErrUnknown  = errors.New("the credential is not known, or was revoked")
	ErrExpired  = errors.New("the credential has expired")
	ErrClass    = errors.New("the credential is of another class")
	ErrDisabled = errors.New("the holder of the credential is not configured any more")
	ErrHolder   = errors.New("nobody of that name is configured")
	ErrSpec     = errors.New("not a credential that can be made")
)

// Lives of what is made for one sign-in.
const (
	LinkLife    = 10 * time.Minute
	SessionLife = 12 * time.Hour // absolute: use does not prolong it
)

// Directory says who exists. Ids are unique within each list.
type Directory struct {
	People []identity.Human // Strength is set by the credential
	Agents []identity.Agent // Session and Device are set by the credential
}

// Credentials keeps credentials in a store. It is safe for concurrent use.
type Credentials struct {
	store store.Store
	dir   atomic.Pointer[Directory]

	random sync.Mutex // guards rand
	rand   io.Reader

	read readKeys
}

// New makes the credentials of a store. rand must be a cryptographic source.
func New(s store.Store, rand io.Reader, dir Directory) (*Credentials, error) {
	if s == nil || rand == nil {
		return nil, errors.New("credential: store and rand are required")
	}
	c := &Credentials{store: s, rand: rand}
	c.SetDirectory(dir)
	return c, nil
}

// SetDirectory puts another list of people and agents in force at once.
func (c *Credentials) SetDirectory(dir Directory) { c.dir.Store(&dir) }

func (c *Credentials) person(id string) (identity.Human, bool) {
	for _, h := range c.dir.Load().People {
		if h.ID == id {
			return h, true
		}
	}
	return identity.Human{}, false
}

// AgentOf looks up a configured agent, without any credential.
func (c *Credentials) AgentOf(id string) (identity.Agent, bool) {
	for _, a := range c.dir.Load().Agents {
		if a.ID == id {
			return a, true
		}
	}
	return identity.Agent{}, false
}

// ClassOf tells the class a text claims to be of, without looking it up; ok is
// false for a text that is no credential of ours.
func ClassOf(text string) (class Class, id string, ok bool) {
	for _, c := range []Class{Agent, Human, Link, Session} {
		rest, found := strings.CutPrefix(text, prefix(c))
		if !found {
			continue
		}
		id, secret, cut := strings.Cut(rest, "_")
		if cut && len(id) == idLen && len(secret) == secretLen && plain(id) && plain(secret) {
			return c, id, true
		}
	}
	return "", "", false
}

func prefix(c Class) string { return "aye_" + string(c) + "_" }

const (
	idBytes, idLen         = 5, 8
	secretBytes, secretLen = 32, 52
)

func plain(s string) bool {
	for i := range len(s) {
		if (s[i] < 'a' || s[i] > 'z') && (s[i] < '2' || s[i] > '7') {
			return false
		}
	}
	return true
}

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// mint makes a new credential text and its id.
func (c *Credentials) mint(class Class) (text, id string, err error) {
	b := make([]byte, idBytes+secretBytes)
	c.random.Lock()
	_, err = io.ReadFull(c.rand, b)
	c.random.Unlock()
	if err != nil {
		return "", "", fmt.Errorf("credential: no randomness: %w", err)
	}
	id = encoding.EncodeToString(b[:idBytes])
	return prefix(class) + id + "_" + encoding.EncodeToString(b[idBytes:]), id, nil
}

// recordID is under what a credential is stored and found.
func recordID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// kind is the kind of the records of a class.
func (c Class) kind() string { return "credential_" + string(c) }

// find looks a text up as a credential of one class that is good now.
func (c *Credentials) find(ctx context.Context, class Class, text string) (Key, error) {
	is, _, ok := ClassOf(text)
	switch {
	case !ok:
		return Key{}, ErrUnknown
	case is != class:
		return Key{}, ErrClass
	}
	r, err := c.store.Load(ctx, class.kind(), recordID(text))
	if errors.Is(err, store.ErrNotFound) {
		return Key{}, ErrUnknown
	}
	if err != nil {
		return Key{}, err
	}
	k, err := c.read.decode(r)
	if err != nil {
		return Key{}, err
	}
	if k.Class != class || k.expired(c.store.Now()) {
		return Key{}, ErrExpired
	}
	return k, nil
}

// readKeys remembers what stored credentials say, so that the one that comes with
// every request of an agent is decoded once. What is stored is compared at each
// use: the store says what is good, this says only how it reads.
type readKeys struct {
	mu    sync.Mutex
	known map[string]readKey // by record
}

type readKey struct {
	value []byte
	key   Key
}

// maxReadKeys bounds them; when there are more, all are forgotten.
const maxReadKeys = 256

func (m *readKeys) decode(r store.Record) (Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was, ok := m.known[r.ID]; ok && bytes.Equal(was.value, r.Value) {
		return was.key, nil
	}
	k, err := decode(r.Value)
	if err != nil {
		return Key{}, err
	}
	if m.known == nil || len(m.known) >= maxReadKeys {
		m.known = make(map[string]readKey)
	}
	m.known[r.ID] = readKey{r.Value, k}
	return k, nil
}

// Agent verifies an agent key. The session of the agent is bound to the key:
// what a client calls its session is a label (TOK-13).
func (c *Credentials) Agent(ctx context.Context, text string) (identity.Agent, Key, error) {
	k, err := c.find(ctx, Agent, text)
	if err != nil {
		return identity.Agent{}, Key{}, err
	}
	a, ok := c.AgentOf(k.For)
	if !ok {
		return identity.Agent{}, k, ErrDisabled
	}
	a.Session, a.Device = "key:"+k.ID, k.Device
	return a, k, nil
}

// Human verifies a human token.
func (c *Credentials) Human(ctx context.Context, text string) (identity.Human, Key, error) {
	k, err := c.find(ctx, Human, text)
	if err != nil {
		return identity.Human{}, Key{}, err
	}
	h, ok := c.person(k.For)
	if !ok {
		return identity.Human{}, k, ErrDisabled
	}
	h.Strength = identity.Token
	return h, k, nil
}

// event is an event about a credential.
func event(kind ledger.Kind, id string, by ledger.Actor, data ...ledger.Field) ledger.Event {
	return ledger.Event{Kind: kind, Subject: id, Actor: by, Data: data}
}

// System is ayegate itself, or whoever has its store in hand.
func System() ledger.Actor { return ledger.Actor{Kind: ledger.System, ID: "ayegate"} }

// Person is a verified person as an actor.
func Person(h identity.Human) ledger.Actor {
	return ledger.Actor{Kind: ledger.Human, ID: h.Subject(), Via: h.Strength.String()}
}
