package api

import (
	"encoding/json"
	"time"
)

// Event is one entry of the record, told as it happens (GET /v1/events) or read
// later. Its number is the id of the server-sent event.
type Event struct {
	// Number in the record.
	Seq int64 `json:"seq"`
	// When, by the server's clock.
	Time time.Time `json:"time"`
	// What happened: "request.asked", "request.decided" and so on.
	Kind string `json:"kind"`
	// What it is about: the id of a request, a key, a tool.
	Subject string `json:"subject"`
	// Who did it.
	Actor Actor `json:"actor"`
	// Facts of the event.
	Data json.RawMessage `json:"data"`
	// The request it is about, as it stands when this is told.
	Request *EventRequest `json:"request,omitempty"`
}

// Actor is who did something.
type Actor struct {
	// human, agent or system.
	Kind string `json:"kind"`
	// "user:ana", "release-bot", "ayegate".
	ID string `json:"id"`
	// Class of the credential.
	Via string `json:"via"`
}

// EventRequest is a request in short.
type EventRequest struct {
	// The UUID.
	ApprovalID string `json:"approvalId"`
	// The short name.
	Code string `json:"code"`
	// Where it stands.
	Status Status `json:"status"`
	// R0 to R4.
	RiskTier string `json:"riskTier"`
	// Who asks.
	Agent string `json:"agent"`
	// Id of the server.
	Server string `json:"server"`
	// Name of the tool.
	Tool string `json:"tool"`
	// The deadline.
	ExpiresAt time.Time `json:"expiresAt"`
}

// AuditPage is a part of the record (GET /v1/audit).
type AuditPage struct {
	// Entries in their canonical form: the leaves of the tree are these bytes.
	Entries []json.RawMessage `json:"entries"`
	// Number of the last entry here, the next "after"; -1 before the first.
	Last int64 `json:"last"`
	// How many entries the record has.
	Size int64 `json:"size"`
}

// Proof shows that one entry is in the record (GET /v1/audit/proof/{seq}).
type Proof struct {
	// Number of the entry.
	Seq int64 `json:"seq"`
	// The entry in its canonical form.
	Entry json.RawMessage `json:"entry"`
	// Hashes from the leaf to the root (RFC 6962, 2.1.1), in base64.
	Path []string `json:"path"`
	// The signed head to which the path leads (C2SP tlog-checkpoint).
	Checkpoint string `json:"checkpoint"`
	// The verifier key of the head.
	PublicKey string `json:"publicKey"`
}

// ExportRequest asks for the whole record as one file
// (POST /v1/audit/export). That it left the house is recorded. It has no fields.
type ExportRequest struct{}

// KeyRequest makes a credential (POST /v1/keys).
type KeyRequest struct {
	// agent or human.
	Class string `json:"class"`
	// Whose: the id of an agent or of a person. People make human tokens for themselves only.
	For string `json:"for"`
	// The only device it is good on. Agents only.
	Device string `json:"device,omitempty"`
	// How long it is good. Absent: until it is revoked.
	ValidFor Duration `json:"validFor,omitzero"`
	// What it is for, in words.
	Note string `json:"note,omitempty"`
}

// Key is a credential without its secret.
type Key struct {
	// Names it; part of the credential's text.
	ID string `json:"id"`
	// agent or human.
	Class string `json:"class"`
	// Whose.
	For string `json:"for"`
	// The only device it is good on. Empty for any.
	Device string `json:"device"`
	// What it is for.
	Note string `json:"note"`
	// When it was made.
	CreatedAt time.Time `json:"createdAt"`
	// Who made it.
	CreatedBy string `json:"createdBy"`
	// When it ends. Absent: when it is revoked.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// NewKey is a credential, told once.
type NewKey struct {
	// The credential without its secret.
	Key Key `json:"key"`
	// The whole credential, for an Authorization header. It is not kept.
	Credential string `json:"credential"`
}

// Keys lists credentials (GET /v1/keys).
type Keys struct {
	// Those that the person may see: of agents, and their own.
	Keys []Key `json:"keys"`
}
