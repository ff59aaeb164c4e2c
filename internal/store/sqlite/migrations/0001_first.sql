-- One row per request. What it is found by is in columns; form is the stored
-- form (package store), and call, salt and result are kept byte for byte.
-- The CHECKs repeat the rules of package approval as a second lock.
-- They are spelled with OR: for an IN of more than two values SQLite would make
-- and fill a temporary table whenever a request changes.
-- Times are nanoseconds since 1970.
CREATE TABLE requests (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL CHECK (id <> ''),
    code       TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    session    TEXT    NOT NULL,
    workspace  TEXT    NOT NULL,
    server     TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    tier       INTEGER NOT NULL CHECK (tier BETWEEN 0 AND 4),
    call_tag   INTEGER NOT NULL, -- the first 8 bytes of the call hash
    state      TEXT    NOT NULL CHECK (
        state = 'executing' OR state = 'executed' OR state = 'pending' OR state = 'approved' OR state = 'denied'
        OR state = 'failed' OR state = 'expired' OR state = 'cancelled' OR state = 'unknown'),
    asked_at   INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at   INTEGER CHECK ((ended_at IS NULL) = (
        state = 'executing' OR state = 'pending' OR state = 'approved' OR state = 'unknown')),
    due_at     INTEGER CHECK ( -- when time acts next
        due_at IS NULL OR state = 'executing' OR state = 'pending' OR state = 'approved'),
    form       BLOB    NOT NULL,
    call       BLOB,   -- NULL: in payloads
    salt       BLOB,
    result     BLOB,   -- NULL: none, or in payloads
    result_at  INTEGER -- ended_at while a result is kept
) STRICT;

CREATE UNIQUE INDEX requests_id   ON requests (id);
CREATE UNIQUE INDEX requests_key  ON requests (agent, key) WHERE key <> '';
CREATE UNIQUE INDEX requests_open ON requests (code) WHERE code <> '' AND state IN ('pending', 'approved');
CREATE INDEX requests_code   ON requests (code) WHERE code <> '';
CREATE INDEX requests_call   ON requests (call_tag);
CREATE INDEX requests_asked  ON requests (asked_at);
CREATE INDEX requests_live   ON requests (state, asked_at) WHERE ended_at IS NULL;
CREATE INDEX requests_due    ON requests (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX requests_result ON requests (result_at) WHERE result_at IS NOT NULL;

-- Calls (at 2n) and results (at 2n+1) too large to be rewritten with their row.
CREATE TABLE payloads (
    p    INTEGER PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;

-- How many live requests there are, so that nobody counts them.
CREATE TABLE counts (
    state TEXT    NOT NULL,
    agent TEXT    NOT NULL,
    tier  INTEGER NOT NULL,
    n     INTEGER NOT NULL CHECK (n >= 0),
    PRIMARY KEY (state, agent, tier)
) STRICT, WITHOUT ROWID;

CREATE TABLE charges (
    key    TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    seq    INTEGER NOT NULL, -- of the first entry of the same commit: tells equal times apart
    amount INTEGER NOT NULL,
    PRIMARY KEY (key, at, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE records (
    kind    TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    value   BLOB    NOT NULL,
    changed INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

-- The ledger. hashes are those that the entry completed: its leaf, then each
-- subtree of which it is the last leaf.
CREATE TABLE entries (
    seq    INTEGER PRIMARY KEY CHECK (seq >= 0),
    line   BLOB NOT NULL,
    hashes BLOB NOT NULL CHECK (length(hashes) % 32 = 0)
) STRICT;

CREATE TABLE head (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    size INTEGER NOT NULL,
    root BLOB    NOT NULL,
    at   INTEGER NOT NULL -- the latest time that was committed
) STRICT;

PRAGMA application_id = 0x61796567; -- "ayeg"
