package credential

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// Key is a credential without its secret.
type Key struct {
	ID        string
	Class     Class
	For       string // id of the agent or person that holds it
	Device    string // the only device it is good on; agents only
	Note      string
	Strength  string // of a session: by what it was started
	Created   time.Time
	CreatedBy string    // subject
	Expires   time.Time // zero: when it is revoked
}

func (k Key) expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// encode and decode are the stored form: our own bytes, so encoding/json may
// read them.
func encode(k Key) ([]byte, error) { return json.Marshal(k) }

func decode(value []byte) (Key, error) {
	var k Key
	if err := json.Unmarshal(value, &k); err != nil {
		return Key{}, fmt.Errorf("a stored credential cannot be read: %w", err)
	}
	return k, nil
}

// Spec is a credential to be made.
type Spec struct {
	Class  Class // Agent or Human
	For    string
	Device string
	Note   string
	Valid  time.Duration // zero: until it is revoked
}

// Limits of what people write into a credential.
const (
	maxNote   = 200
	maxDevice = 200
)

// Add makes a credential and returns its text, which is not kept. Who may do
// that is the caller's to know.
func (c *Credentials) Add(ctx context.Context, by ledger.Actor, s Spec) (Key, string, error) {
	switch {
	case s.Class != Agent && s.Class != Human:
		return Key{}, "", fmt.Errorf("%w: the class is agent or human", ErrSpec)
	case s.Class == Human && s.Device != "":
		return Key{}, "", fmt.Errorf("%w: only an agent key is bound to a device", ErrSpec)
	case len(s.Note) > maxNote || len(s.Device) > maxDevice:
		return Key{}, "", fmt.Errorf("%w: note or device is too long", ErrSpec)
	case s.Valid < 0:
		return Key{}, "", fmt.Errorf("%w: it would have ended before it began", ErrSpec)
	}
	if !c.exists(s.Class, s.For) {
		return Key{}, "", ErrHolder
	}
	return c.add(ctx, by, s)
}

func (c *Credentials) exists(class Class, id string) bool {
	if class == Agent {
		_, ok := c.AgentOf(id)
		return ok
	}
	_, ok := c.person(id)
	return ok
}

// add stores a new credential of any class but Session.
func (c *Credentials) add(ctx context.Context, by ledger.Actor, s Spec) (Key, string, error) {
	text, id, err := c.mint(s.Class)
	if err != nil {
		return Key{}, "", err
	}
	k := Key{ID: id, Class: s.Class, For: s.For, Device: s.Device, Note: s.Note, CreatedBy: by.ID}
	added := event(ledger.KeyAdded, id, by, ledger.String("class", string(s.Class)), ledger.String("for", s.For))
	if err := c.put(ctx, &k, text, s.Valid, added); err != nil {
		return Key{}, "", err
	}
	return k, text, nil
}

// put stores a new credential together with its event.
func (c *Credentials) put(ctx context.Context, k *Key, text string, valid time.Duration, e ledger.Event) error {
	return c.store.Update(ctx, k.Class.kind(), recordID(text), func(old []byte, now time.Time) ([]byte, ledger.Event, error) {
		if old != nil {
			return nil, ledger.Event{}, store.ErrExists
		}
		k.Created = now
		if valid > 0 {
			k.Expires = now.Add(valid)
		}
		value, err := encode(*k)
		return value, e, err
	})
}

// Keys lists agent keys and human tokens, by holder and age.
func (c *Credentials) Keys(ctx context.Context) ([]Key, error) {
	var out []Key
	for _, class := range []Class{Agent, Human} {
		for r, err := range c.store.Records(ctx, class.kind()) {
			if err != nil {
				return nil, err
			}
			k, err := decode(r.Value)
			if err != nil {
				return nil, err
			}
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.For, b.For), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// Get returns the agent key or human token with an id.
func (c *Credentials) Get(ctx context.Context, id string) (Key, error) {
	keys, err := c.Keys(ctx)
	if err != nil {
		return Key{}, err
	}
	for _, k := range keys {
		if k.ID == id {
			return k, nil
		}
	}
	return Key{}, store.ErrNotFound
}

// Revoke ends an agent key or human token from this moment on. Sessions that
// were started with a token end with it.
func (c *Credentials) Revoke(ctx context.Context, by ledger.Actor, id, reason string) error {
	found := false
	for _, class := range []Class{Agent, Human} {
		n, err := c.end(ctx, class, func(k Key, _ time.Time) bool { return k.ID == id },
			func(k Key) ledger.Event {
				return event(ledger.KeyRevoked, k.ID, by, ledger.String(ledger.FieldReason, clip(reason)))
			})
		if err != nil {
			return err
		}
		found = found || n > 0
	}
	if !found {
		return store.ErrNotFound
	}
	_, err := c.end(ctx, Session, func(k Key, _ time.Time) bool { return k.CreatedBy == id }, signedOut("revoked"))
	return err
}

// end deletes the credentials of a class that which selects, each with its own
// event, and says how many there were.
func (c *Credentials) end(ctx context.Context, class Class, which func(Key, time.Time) bool, why func(Key) ledger.Event) (int, error) {
	var ids []string
	now := c.store.Now()
	for r, err := range c.store.Records(ctx, class.kind()) {
		if err != nil {
			return 0, err
		}
		k, err := decode(r.Value)
		if err != nil {
			return 0, err
		}
		if which(k, now) {
			ids = append(ids, r.ID)
		}
	}
	n := 0
	for _, id := range ids {
		_, err := c.take(ctx, class, id, why)
		if err != nil && !errors.Is(err, ErrUnknown) {
			return n, err
		}
		if err == nil {
			n++
		}
	}
	return n, nil
}

// take deletes one credential and returns it; of two that try, one succeeds.
func (c *Credentials) take(ctx context.Context, class Class, recordID string, why func(Key) ledger.Event) (Key, error) {
	var k Key
	err := c.store.Update(ctx, class.kind(), recordID, func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
		if old == nil {
			return nil, ledger.Event{}, ErrUnknown
		}
		var err error
		if k, err = decode(old); err != nil {
			return nil, ledger.Event{}, err
		}
		return nil, why(k), nil
	})
	return k, err
}

func clip(s string) string {
	const most = 2000
	if len(s) > most {
		return s[:most] + " …"
	}
	return s
}
