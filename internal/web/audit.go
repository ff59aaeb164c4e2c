package web

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"reflect"
	"strconv"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/web/credential"
)

// recordRoutes is the record: told as it grows, read, proved, taken out.
func recordRoutes() []route {
	return []route{
		eventRoute(),
		get(humans, "/v1/audit", "readAudit", "Reads entries of the record in their canonical form.", (*exchange).readAudit,
			param{"after", "Number of the last entry that the reader has. Absent: from the beginning."},
			param{"limit", "How many at most; 200 when absent, 1000 at most."}),
		{
			method: http.MethodGet, pattern: "/v1/audit/checkpoint", plane: humans, name: "checkpoint", media: "text/plain",
			doc: "Signs the head of the record as it is now (C2SP tlog-checkpoint).", serve: (*exchange).checkpoint,
		},
		get(humans, "/v1/audit/proof/{id}", "proveEntry", "Proves that the entry with this number is in the record.", (*exchange).proof),
		{
			method: http.MethodPost, pattern: "/v1/audit/export", plane: humans, name: "exportAudit", media: "application/x-ndjson",
			doc: "Returns the whole record as one file for ayegate log verify.", records: string(ledger.LedgerExported),
			in: reflect.TypeFor[api.ExportRequest](), serve: (*exchange).export,
		},
	}
}

func (x *exchange) readAudit() (api.AuditPage, error) {
	q, err := x.params("after", "limit")
	if err != nil {
		return api.AuditPage{}, err
	}
	limit, err := number(q, "limit", 200, 1000)
	if err != nil || limit == 0 {
		return api.AuditPage{}, badQuery(`"limit" is a number from 1 to 1000.`)
	}
	after, err := number(q, "after", -1, ledger.MaxSize)
	if err != nil {
		return api.AuditPage{}, err
	}
	h, err := x.web.store.Head(x.r.Context())
	if err != nil {
		return api.AuditPage{}, err
	}
	out := api.AuditPage{Entries: []json.RawMessage{}, Last: after, Size: h.Size}
	for text, err := range x.web.entries(x.r.Context(), after+1, min(h.Size, after+1+limit)) {
		if err != nil {
			return api.AuditPage{}, err
		}
		out.Entries = append(out.Entries, text)
		out.Last++
	}
	return out, nil
}

// entries yields the lines from number first up to, without, end.
func (w *Web) entries(ctx context.Context, first, end int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if first >= end {
			return
		}
		seq := first
		for text, err := range w.store.Entries(ctx, first) {
			if !yield(text, err) || err != nil {
				return
			}
			if seq++; seq == end {
				return
			}
		}
	}
}

// signed is the head of the record as it is now, signed.
func (w *Web) signed(ctx context.Context) (ledger.Head, []byte, error) {
	if w.cfg.Signer == nil {
		return ledger.Head{}, nil, newProblem(http.StatusNotFound, api.NotFound, "This server has no key to sign the record with.")
	}
	h, err := w.store.Head(ctx)
	if err != nil {
		return h, nil, err
	}
	text, err := w.cfg.Signer.Checkpoint(h, w.store.Now())
	return h, text, err
}

func (x *exchange) checkpoint() error {
	_, text, err := x.web.signed(x.r.Context())
	if err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	x.write(text)
	return nil
}

// write sends a short answer that is no JSON.
func (x *exchange) write(b []byte) {
	x.web.until(x.w, writeTime)
	if x.r.Method == http.MethodHead {
		return
	}
	if _, err := x.w.Write(b); err != nil {
		x.web.log.Debug("an answer was not taken", "route", x.r.Pattern, "err", err)
	}
}

func (x *exchange) proof() (api.Proof, error) {
	id := x.r.PathValue("id")
	seq, err := strconv.ParseInt(id, 10, 64)
	if err != nil || seq < 0 || strconv.FormatInt(seq, 10) != id {
		return api.Proof{}, newProblem(http.StatusNotFound, api.NotFound, "There is no such entry: name it by its number.")
	}
	h, text, err := x.web.signed(x.r.Context())
	if err != nil {
		return api.Proof{}, err
	}
	if seq >= h.Size {
		return api.Proof{}, newProblem(http.StatusNotFound, api.NotFound, "There is no such entry yet.")
	}
	path, err := ledger.ProveInclusion(h.Size, seq, x.web.store.Hashes(x.r.Context()))
	if err != nil {
		return api.Proof{}, err
	}
	out := api.Proof{Seq: seq, Path: make([]string, 0, len(path)), Checkpoint: string(text), PublicKey: x.web.cfg.Signer.PublicKey()}
	for _, hash := range path {
		out.Path = append(out.Path, hash.String())
	}
	for line, err := range x.web.entries(x.r.Context(), seq, seq+1) {
		if err != nil {
			return api.Proof{}, err
		}
		out.Entry = line
	}
	return out, nil
}

// export sends the whole record. That it leaves the house is on the record
// before its first byte does.
func (x *exchange) export() error {
	var in api.ExportRequest
	if err := x.decode(&in); err != nil {
		return err
	}
	release, ok := x.web.streams.take(x.human.ID)
	if !ok {
		return newProblem(http.StatusTooManyRequests, api.TooManyStreams, "Too many streams are open already. Close one and come back.")
	}
	defer release()
	before, err := x.web.store.Head(x.r.Context())
	if err != nil {
		return err
	}
	err = x.web.desk.Record(x.r.Context(), ledger.Event{
		Kind: ledger.LedgerExported, Subject: x.web.logName(), Actor: credential.Person(x.human),
		Data: []ledger.Field{ledger.Int("size", before.Size)},
	})
	if err != nil {
		return err
	}
	h, checkpoints, err := x.web.heads(x.r.Context())
	if err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", "application/x-ndjson")
	x.w.Header().Set("Content-Disposition", `attachment; filename="ayegate-ledger.ndjson"`)
	lines := x.web.entries(x.r.Context(), 0, h.Size)
	if err := ledger.WriteExportLeaves(patient{x}, lines, x.web.store.Hashes(x.r.Context()), checkpoints...); err != nil {
		x.web.log.Warn("an export broke off", "who", x.human.ID, "err", err)
		panic(http.ErrAbortHandler) // a file that ends early must not look whole
	}
	return nil
}

// heads is the head to export and, where there is a key, its checkpoint.
func (w *Web) heads(ctx context.Context) (ledger.Head, [][]byte, error) {
	if w.cfg.Signer == nil {
		h, err := w.store.Head(ctx)
		return h, nil, err
	}
	h, text, err := w.signed(ctx)
	return h, [][]byte{text}, err
}

// logName names the record in its own entries.
func (w *Web) logName() string {
	if w.cfg.Signer == nil {
		return w.store.Name()
	}
	return w.cfg.Signer.Origin()
}

// patient gives each piece of a long answer its own time.
type patient struct{ x *exchange }

func (p patient) Write(b []byte) (int, error) {
	p.x.web.until(p.x.w, writeTime)
	return p.x.w.Write(b)
}
