package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"
)

// head is a checkpoint that a verification came upon.
type head struct {
	Checkpoint
	own  bool  // the auditor's, kept outside
	line int64 // of the export; 0 for the auditor's
	at   int64 // entries read when it was met
	root Hash  // over them
}

func (h *head) met(tree *Frontier) { h.at, h.root = tree.Size(), tree.Root() }

// holds reports whether the entries are those that were signed.
func (h *head) holds() bool { return h.at == h.Size && h.root == h.Root }

func (h *head) whose() string {
	if h.own {
		return "the checkpoint kept outside"
	}
	return "a checkpoint of the export"
}

// turn is a change of the log's key, recorded as entry seq.
type turn struct {
	seq      int64
	was, key string
}

// turn notes a change of the key.
func (v *verifier) turn(e Entry) {
	was, _ := e.Text(FieldWas)
	key, _ := e.Text(FieldKey)
	_, err1 := note.NewVerifier(was)
	_, err2 := note.NewVerifier(key)
	if err1 != nil || err2 != nil || was == key {
		v.fault(e.Seq, "does not name two keys")
		return
	}
	if n := len(v.turns); n > 0 && v.turns[n-1].key != was {
		v.fault(e.Seq, "takes over from a key that was not in force")
	}
	v.turns = append(v.turns, turn{e.Seq, was, key})
}

// inForce returns the key that must sign a log of size entries; without a change
// of keys in the record any of the auditor's may, and it returns "".
func (v *verifier) inForce(size int64) string {
	if len(v.turns) == 0 {
		return ""
	}
	key := v.turns[0].was
	for _, t := range v.turns {
		if t.seq < size {
			key = t.key
		}
	}
	return key
}

// prepare checks what the auditor brought along.
func (v *verifier) prepare(opt VerifyOptions) error {
	for _, k := range opt.Keys {
		if _, err := note.NewVerifier(k); err != nil {
			return fmt.Errorf("%w: verifier key %q: %w", ErrKey, k, err)
		}
	}
	for i, text := range opt.Trusted {
		c, _, err := readCheckpoint(text, nil)
		if err != nil {
			return fmt.Errorf("trusted checkpoint %d of %d: %w", i+1, len(opt.Trusted), err)
		}
		v.heads = append(v.heads, &head{Checkpoint: c, own: true})
	}
	v.ahead = slices.SortedStableFunc(slices.Values(v.heads), bySizeThenLine)
	return nil
}

func bySizeThenLine(a, b *head) int {
	return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.line, b.line))
}

// judgeHeads compares all signed heads with what was read.
func (v *verifier) judgeHeads(keys []string) {
	for _, h := range v.ahead {
		h.met(&v.tree) // over more than there is
	}
	slices.SortStableFunc(v.heads, bySizeThenLine)
	signed := v.judgeSignatures(keys)
	var good, covered int64 // entries under a head that holds, under any signed head
	for _, h := range v.heads {
		if !signed[h] && len(keys) > 0 {
			continue
		}
		covered = max(covered, h.Size)
		switch {
		case h.Size > h.at:
			v.report(Fault{h.at, h.Size - 1, h.line, fmt.Sprintf("missing: %s covers %d entries, %d are there: cut off or rolled back", h.whose(), h.Size, h.at)})
		case h.Size < h.at: // out of its place, reported when it was read
		case h.root != h.Root:
			first, last := v.suspects(good, h.Size-1)
			v.report(Fault{first, last, h.line, fmt.Sprintf("changed: %s over %d entries has another root", h.whose(), h.Size)})
		default:
			good = h.Size
			v.hold(h, len(keys) > 0)
		}
	}
	if len(keys) > 0 && covered < v.rep.Entries {
		v.report(Fault{covered, v.rep.Entries - 1, 0, "under no checkpoint that a key of the log signed"})
	}
}

func (v *verifier) hold(h *head, signed bool) {
	v.rep.Checkpoints = append(v.rep.Checkpoints, h.Checkpoint)
	if signed {
		v.rep.Signed = h.Size
	}
	if h.own {
		v.rep.Anchored = h.Size
	}
}

// judgeSignatures tells which heads the key in force has signed.
func (v *verifier) judgeSignatures(keys []string) map[*head]bool {
	if len(v.heads) > 0 {
		for _, h := range v.heads[1:] {
			if h.Origin != v.heads[0].Origin {
				v.report(Fault{-1, -1, h.line, fmt.Sprintf("%s is of the log %q, not of %q", h.whose(), h.Origin, v.heads[0].Origin)})
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	all := slices.Clone(keys)
	for _, t := range v.turns {
		all = append(all, t.was, t.key)
	}
	opened := make(map[*head]bool)
	for _, h := range v.heads {
		opened[h] = v.open(h, all)
	}
	accepted := v.acceptKeys(keys)
	for _, h := range v.heads {
		if !opened[h] {
			continue
		}
		key := v.inForce(h.Size)
		by := func(k string) bool { return (key == "" || k == key) && accepted[k] }
		if opened[h] = slices.ContainsFunc(h.Keys, by); !opened[h] {
			v.report(Fault{-1, -1, h.line, fmt.Sprintf("%s over %d entries is not signed by a key in force then that the auditor has reason to trust", h.whose(), h.Size)})
		}
	}
	return opened
}

// open checks a head's signatures by all keys that may matter.
func (v *verifier) open(h *head, all []string) bool {
	c, n, err := readCheckpoint(h.Text, all)
	if err != nil {
		v.report(Fault{-1, -1, h.line, fmt.Sprintf("%s over %d entries: %v", h.whose(), h.Size, err)})
		return false
	}
	for _, s := range n.UnverifiedSigs {
		if s.Name == h.Origin {
			v.report(Fault{-1, -1, h.line, fmt.Sprintf("%s over %d entries is signed in the log's name by the unknown key %08x", h.whose(), h.Size, s.Hash)})
		}
	}
	h.Checkpoint = c
	return true
}

// acceptKeys extends the auditor's trust over changes of the key (AUD-12):
// forward where one signed head carries both keys, and back where the record that
// the newer key signed names the older one.
func (v *verifier) acceptKeys(keys []string) map[string]bool {
	accepted := make(map[string]bool)
	for _, k := range keys {
		accepted[k] = true
	}
	over := func(t turn, by ...string) bool {
		return slices.ContainsFunc(v.heads, func(h *head) bool {
			return h.Size > t.seq && h.holds() &&
				!slices.ContainsFunc(by, func(k string) bool { return !slices.Contains(h.Keys, k) })
		})
	}
	for _, t := range v.turns {
		if !over(t, t.was, t.key) {
			v.report(Fault{t.seq, t.seq, 0, "changes the key, but no checkpoint over it is signed with both keys"})
		} else if accepted[t.was] {
			accepted[t.key] = true
		}
	}
	for _, t := range slices.Backward(v.turns) {
		if accepted[t.key] && over(t, t.key) {
			accepted[t.was] = true
		}
	}
	return accepted
}
