// Package ledger is the tamper-evident record: what was asked, decided and run.
package ledger
