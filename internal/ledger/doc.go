// Package ledger is the tamper-evident record of ayegate: what was asked, who
// decided, what ran, and everything else that decides who may.
//
// The record is a log of entries, each one line of canonical JSON ([Event.Entry]).
// The entries are the leaves of a Merkle tree (RFC 6962, section 2.1; the stored
// form is that of golang.org/x/mod/sumdb/tlog), and the tree's head is signed as a
// checkpoint (C2SP tlog-checkpoint and signed-note, Ed25519). Single entries are
// not signed: they are in the same commit as the change that they record, and
// a head signs them all.
//
// The package owns the kinds of events and what their data means ([Kind]), the
// one spelling of an entry, the arithmetic of the tree, checkpoints and their
// keys, the export format, and [Verify], which says of an export whether anybody
// changed it and whether the story that it tells is one that ayegate's rules
// allow. docs/ledger.md explains the format to those who do not read Go.
//
// Not here: storing anything (package store), deciding anything (package approval),
// where the key lives, and who is given the checkpoints. Whoever holds the log and its
// key can write another log; what stops them is a checkpoint that somebody else
// kept.
//
// The record never holds what a call said, only commitments ([Commit]) whose salt
// is kept, and erased, with the call.
//
// Everything here is pure: no I/O but the reader or writer it is given, no clock,
// no goroutine, no state between calls.
package ledger
