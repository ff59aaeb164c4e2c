package ledger

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// ErrCheckpoint means that a text is not a checkpoint, or that nobody who may
// signed it.
var ErrCheckpoint = errors.New("ledger: not a signed checkpoint of the log")

// timePrefix starts the extension line that says when a head was signed.
const timePrefix = "time "

// maxCheckpoint bounds the bytes of a checkpoint: some hundred signatures.
const maxCheckpoint = 16 << 10

// Checkpoint is a signed head (C2SP tlog-checkpoint).
type Checkpoint struct {
	Origin string    // names the log
	Head             // what was signed
	Time   time.Time // when, by the signer's clock: evidence, not proof
	Keys   []string  // the verifier keys among those given that signed it
	Text   []byte    // the signed note, to be kept or published as it is
}

// Checkpoint signs a head: the origin, the size, the root and, as an extension
// line, the time.
func (s *Signer) Checkpoint(h Head, at time.Time) ([]byte, error) {
	return SignHead(h, at, s)
}

// SignHead signs one head with several keys of one log, as a change of keys asks
// for: the old one first, then the new.
func SignHead(h Head, at time.Time, signers ...*Signer) ([]byte, error) {
	if len(signers) == 0 {
		return nil, fmt.Errorf("%w: no key to sign with", ErrKey)
	}
	if h.Size < 0 || h.Size > MaxSize || at.IsZero() {
		return nil, fmt.Errorf("%w: size %d at %v", ErrCheckpoint, h.Size, at)
	}
	origin := signers[0].Origin()
	notes := make([]note.Signer, len(signers))
	for i, s := range signers {
		if s.Origin() != origin {
			return nil, fmt.Errorf("%w: keys of %q and of %q", ErrKey, origin, s.Origin())
		}
		notes[i] = s.note
	}
	text := fmt.Sprintf("%s\n%d\n%s\n%s%s\n", origin, h.Size, h.Root, timePrefix, at.UTC().Format(time.RFC3339Nano))
	return note.Sign(&note.Note{Text: text}, notes...)
}

// ParseCheckpoint reads a checkpoint and checks its signatures. It must carry at
// least one by a key of vkeys that bears the log's name, and none of a known key
// that is wrong; signatures of unknown keys, such as witnesses', are passed over.
func ParseCheckpoint(text []byte, vkeys ...string) (Checkpoint, error) {
	c, _, err := readCheckpoint(text, vkeys)
	if err != nil {
		return Checkpoint{}, err
	}
	if len(c.Keys) == 0 {
		return Checkpoint{}, fmt.Errorf("%w: size %d of %q is not signed by any of the %d keys given", ErrCheckpoint, c.Size, c.Origin, len(vkeys))
	}
	return c, nil
}

// readCheckpoint reads a checkpoint that may lack a signature by a known key.
func readCheckpoint(text []byte, vkeys []string) (Checkpoint, *note.Note, error) {
	if len(text) > maxCheckpoint {
		return Checkpoint{}, nil, fmt.Errorf("%w: %d bytes, %d are the limit", ErrCheckpoint, len(text), maxCheckpoint)
	}
	verifiers := make([]note.Verifier, 0, len(vkeys))
	for _, k := range slices.Compact(slices.Sorted(slices.Values(vkeys))) {
		v, err := note.NewVerifier(k)
		if err != nil {
			return Checkpoint{}, nil, fmt.Errorf("%w: verifier key %q: %w", ErrKey, k, err)
		}
		verifiers = append(verifiers, v)
	}
	n, err := note.Open(text, note.VerifierList(verifiers...))
	var unsigned *note.UnverifiedNoteError
	if errors.As(err, &unsigned) {
		n = unsigned.Note
	} else if err != nil {
		return Checkpoint{}, nil, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	if !oneSpelling(n) {
		return Checkpoint{}, nil, fmt.Errorf("%w: a signature is spelled another way", ErrCheckpoint)
	}
	c, err := parseBody(n.Text)
	if err != nil {
		return Checkpoint{}, nil, err
	}
	c.Text = bytes.Clone(text)
	for _, k := range vkeys {
		if signedBy(n.Sigs, c.Origin, k) && !slices.Contains(c.Keys, k) {
			c.Keys = append(c.Keys, k)
		}
	}
	return c, n, nil
}

// oneSpelling refuses base64 with stray bits at its end: they could be changed
// without anybody noticing.
func oneSpelling(n *note.Note) bool {
	for _, s := range slices.Concat(n.Sigs, n.UnverifiedSigs) {
		if _, err := base64.StdEncoding.Strict().DecodeString(s.Base64); err != nil {
			return false
		}
	}
	return true
}

// signedBy reports whether one of the verified signatures is by vkey, and vkey
// bears the name of the log: a witness's key never speaks for the log.
func signedBy(sigs []note.Signature, origin, vkey string) bool {
	for _, s := range sigs {
		if s.Name == origin && strings.HasPrefix(vkey, fmt.Sprintf("%s+%08x+", s.Name, s.Hash)) {
			return true
		}
	}
	return false
}

// parseBody reads origin, size, root and extension lines, each ended by a newline.
func parseBody(text string) (Checkpoint, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 3 || slices.Contains(lines, "") {
		return Checkpoint{}, fmt.Errorf("%w: %d lines", ErrCheckpoint, len(lines))
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || size > MaxSize || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("%w: size %q", ErrCheckpoint, lines[1])
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil || root.String() != lines[2] {
		return Checkpoint{}, fmt.Errorf("%w: root %q", ErrCheckpoint, lines[2])
	}
	c := Checkpoint{Origin: lines[0], Head: Head{Size: size, Root: root}}
	for _, ext := range lines[3:] {
		if stamp, ok := strings.CutPrefix(ext, timePrefix); ok && c.Time.IsZero() {
			if c.Time, err = parseTime(stamp); err != nil {
				return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
			}
		}
	}
	return c, nil
}

// parseTime reads the one spelling of a time that this package writes.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.UTC().Format(time.RFC3339Nano) != s {
		return time.Time{}, fmt.Errorf("time %q is not UTC in its shortest RFC 3339 form", s)
	}
	return t.UTC(), nil
}
