package ledger

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// ErrKey means that a text is not a key of the log.
var ErrKey = errors.New("ledger: not a key of the log")

// Signer holds a private key of the log: an Ed25519 key whose name is the log's
// origin (C2SP signed-note). Printing it shows the public half only.
type Signer struct {
	note note.Signer
	skey string
	vkey string
}

// NewKey makes a key for the log named origin: what names the log for good, such
// as "ayegate.example.com/log", without spaces and plus signs.
func NewKey(origin string, rand io.Reader) (*Signer, error) {
	skey, _, err := note.GenerateKey(rand, origin)
	if err != nil {
		return nil, fmt.Errorf("ledger: make a key: %w", err)
	}
	return ParseKey(skey)
}

// ParseKey reads what [Signer.Secret] returned. Errors never show the key.
func ParseKey(secret string) (*Signer, error) {
	parts := strings.SplitN(secret, "+", 5) // PRIVATE, KEY, name, hash, base64 (which may hold a +)
	raw, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(raw) != 1+ed25519.SeedSize {
		return nil, fmt.Errorf("%w: not a private Ed25519 key", ErrKey)
	}
	n, err := note.NewSigner(secret)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	algorithm, seed := raw[:1], raw[1:]
	pub := slices.Concat(algorithm, ed25519.NewKeyFromSeed(seed)[ed25519.SeedSize:])
	vkey := fmt.Sprintf("%s+%08x+%s", n.Name(), n.KeyHash(), base64.StdEncoding.EncodeToString(pub))
	return &Signer{note: n, skey: secret, vkey: vkey}, nil
}

// Origin returns the name of the log that the key is for.
func (s *Signer) Origin() string { return s.note.Name() }

// PublicKey returns the verifier key ("vkey"): what auditors are given.
func (s *Signer) PublicKey() string { return s.vkey }

// Secret returns the private key for the file that keeps it.
func (s *Signer) Secret() string { return s.skey }

// String returns the verifier key, so that a log line never holds the secret.
func (s *Signer) String() string { return s.vkey }

// GoString returns the verifier key too.
func (s *Signer) GoString() string { return s.vkey }
