-- Times are microseconds UTC, 0 for none; texts are '' for none; flags are 0 or 1.

-- +goose Up
CREATE TABLE calls (
	tenant         TEXT    NOT NULL,
	id             TEXT    NOT NULL,
	operation      TEXT    NOT NULL,
	key            TEXT    NOT NULL,
	fingerprint    TEXT    NOT NULL,
	principal      TEXT    NOT NULL,
	actor          TEXT    NOT NULL,
	agent          TEXT    NOT NULL,
	origin         TEXT    NOT NULL,
	parent_id      TEXT    NOT NULL,
	plan_id        TEXT    NOT NULL,
	session_id     TEXT    NOT NULL,
	labels         TEXT    NOT NULL, -- a JSON array
	version        TEXT    NOT NULL,
	package_digest TEXT    NOT NULL,
	policy_version TEXT    NOT NULL,
	input_hash     TEXT    NOT NULL,
	effectful      INTEGER NOT NULL,
	state          TEXT    NOT NULL,
	attempt        INTEGER NOT NULL,
	lease          TEXT    NOT NULL,
	node           TEXT    NOT NULL,
	wake_at        INTEGER NOT NULL,
	deadline       INTEGER NOT NULL,
	result_hash    TEXT    NOT NULL,
	code           TEXT    NOT NULL,
	schema_version TEXT    NOT NULL,
	created_at     INTEGER NOT NULL,
	updated_at     INTEGER NOT NULL,
	PRIMARY KEY (tenant, id),
	UNIQUE (tenant, operation, key)
);
CREATE INDEX calls_running ON calls (node) WHERE state = 'running';

-- The order of the primary key is the order of the chain, so a table without
-- row ids appends at one place and needs no second tree.
CREATE TABLE entries (
	chain     INTEGER NOT NULL,
	seq       INTEGER NOT NULL,
	at        INTEGER NOT NULL,
	tenant    TEXT    NOT NULL,
	kind      TEXT    NOT NULL,
	subject   TEXT    NOT NULL,
	principal TEXT    NOT NULL,
	body      TEXT    NOT NULL,
	prev      TEXT    NOT NULL,
	hash      TEXT    NOT NULL,
	PRIMARY KEY (chain, seq)
) WITHOUT ROWID;
CREATE INDEX entries_subject ON entries (subject);

CREATE TABLE chains (
	id   INTEGER PRIMARY KEY,
	node TEXT    NOT NULL,
	seq  INTEGER NOT NULL,
	head TEXT    NOT NULL,
	mac  TEXT    NOT NULL
);

CREATE TABLE bodies (
	tenant     TEXT NOT NULL,
	hash       TEXT NOT NULL,
	data       BLOB, -- NULL once erased
	expires_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, hash)
);

CREATE TABLE packages (
	digest TEXT PRIMARY KEY,
	source TEXT NOT NULL,
	signer TEXT NOT NULL
);

CREATE TABLE plugins (
	name           TEXT    NOT NULL,
	version        TEXT    NOT NULL,
	package_digest TEXT    NOT NULL,
	path           TEXT    NOT NULL,
	manifest       TEXT    NOT NULL,
	state          TEXT    NOT NULL,
	approved_by    TEXT    NOT NULL,
	dev            INTEGER NOT NULL,
	registered_at  INTEGER NOT NULL,
	PRIMARY KEY (name, version)
);

CREATE TABLE nodes (
	id          TEXT PRIMARY KEY,
	addr        TEXT    NOT NULL,
	epoch       INTEGER NOT NULL,
	started_at  INTEGER NOT NULL,
	lease_until INTEGER NOT NULL
);
