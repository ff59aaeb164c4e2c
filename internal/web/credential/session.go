package credential

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
)

// SignedIn is a browser session.
type SignedIn struct {
	ID      string
	Human   identity.Human
	Expires time.Time
	// Form is what every form of the session must carry: it is made from the
	// cookie, so a page of another origin cannot know it.
	Form string
}

// NewLink makes the secret of a sign-in link for a person: good once, for ten
// minutes. Links that were never used are cleared away.
func (c *Credentials) NewLink(ctx context.Context, by ledger.Actor, human string) (string, error) {
	if _, ok := c.person(human); !ok {
		return "", ErrHolder
	}
	if err := c.clear(ctx); err != nil {
		return "", err
	}
	_, text, err := c.add(ctx, by, Spec{Class: Link, For: human, Valid: LinkLife})
	return text, err
}

// clear ends what has run out, so that it does not pile up.
func (c *Credentials) clear(ctx context.Context) error {
	old := Key.expired
	_, err := c.end(ctx, Link, old, func(k Key) ledger.Event {
		return event(ledger.KeyRevoked, k.ID, System(), ledger.String(ledger.FieldReason, "expired"))
	})
	if err != nil {
		return err
	}
	_, err = c.end(ctx, Session, old, signedOut("expired"))
	return err
}

func signedOut(cause string) func(Key) ledger.Event {
	return func(k Key) ledger.Event {
		by := ledger.Actor{Kind: ledger.Human, ID: "user:" + k.For, Via: "session"}
		return event(ledger.AuthSignedOut, k.ID, by, ledger.String(ledger.FieldCause, cause))
	}
}

// SignIn starts a browser session by the secret of a link, which is used up, or
// by a human token. It returns the text of the cookie. A session that the
// browser had before ends: no id survives a sign-in (WEB-07).
func (c *Credentials) SignIn(ctx context.Context, secret, before string) (SignedIn, string, error) {
	h, from, method, err := c.proof(ctx, secret)
	if err != nil {
		return SignedIn{}, "", err
	}
	if err := c.SignOut(ctx, before, "signed in again"); err != nil && !errors.Is(err, ErrUnknown) {
		return SignedIn{}, "", err
	}
	text, id, err := c.mint(Session)
	if err != nil {
		return SignedIn{}, "", err
	}
	k := Key{ID: id, Class: Session, For: h.ID, Strength: h.Strength.String(), CreatedBy: from.ID}
	life := SessionLife
	if !from.Expires.IsZero() && method == "token" {
		life = max(min(life, from.Expires.Sub(c.store.Now())), time.Nanosecond) // zero would be for good
	}
	e := event(ledger.AuthSignedIn, id, Person(h), ledger.String("method", method), ledger.String(ledger.FieldStrength, k.Strength))
	if err := c.put(ctx, &k, text, life, e); err != nil {
		return SignedIn{}, "", err
	}
	return SignedIn{ID: id, Human: h, Expires: k.Expires, Form: formToken(text)}, text, nil
}

// proof says who presents a secret, and uses up what can be used once.
func (c *Credentials) proof(ctx context.Context, secret string) (identity.Human, Key, string, error) {
	if class, _, _ := ClassOf(secret); class != Link {
		h, k, err := c.Human(ctx, secret)
		return h, k, "token", err
	}
	if _, err := c.find(ctx, Link, secret); err != nil {
		return identity.Human{}, Key{}, "", err
	}
	k, err := c.take(ctx, Link, recordID(secret), func(k Key) ledger.Event {
		by := ledger.Actor{Kind: ledger.Human, ID: "user:" + k.For, Via: "link"}
		return event(ledger.KeyRevoked, k.ID, by, ledger.String(ledger.FieldReason, "used"))
	})
	if err != nil {
		return identity.Human{}, Key{}, "", err
	}
	h, ok := c.person(k.For)
	if !ok {
		return identity.Human{}, k, "", ErrDisabled
	}
	h.Strength = identity.Session
	return h, k, "link", nil
}

// Session verifies the cookie of a browser session.
func (c *Credentials) Session(ctx context.Context, cookie string) (SignedIn, error) {
	k, err := c.find(ctx, Session, cookie)
	if err != nil {
		return SignedIn{}, err
	}
	h, ok := c.person(k.For)
	if !ok {
		return SignedIn{}, ErrDisabled
	}
	h.Strength = identity.Token
	if k.Strength == identity.Session.String() {
		h.Strength = identity.Session
	}
	return SignedIn{ID: k.ID, Human: h, Expires: k.Expires, Form: formToken(cookie)}, nil
}

// SignOut ends a browser session. One that is not there is [ErrUnknown].
func (c *Credentials) SignOut(ctx context.Context, cookie, cause string) error {
	if class, _, ok := ClassOf(cookie); !ok || class != Session {
		return ErrUnknown
	}
	_, err := c.take(ctx, Session, recordID(cookie), signedOut(cause))
	return err
}

// formToken is bound to the cookie and tells nothing about it.
func formToken(cookie string) string {
	m := hmac.New(sha256.New, []byte(cookie))
	m.Write([]byte("ayegate form"))
	return encoding.EncodeToString(m.Sum(nil))
}
