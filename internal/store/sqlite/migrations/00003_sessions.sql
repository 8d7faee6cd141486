-- What investigations keep, and what was spent.

-- +goose Up
CREATE TABLE sessions (
	tenant     TEXT    NOT NULL,
	id         TEXT    NOT NULL,
	name       TEXT    NOT NULL,
	kind       TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	pillar     TEXT    NOT NULL,
	state      TEXT    NOT NULL,
	labels     TEXT    NOT NULL, -- a JSON array
	artifacts  INTEGER NOT NULL, -- how many it has
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
);
CREATE INDEX sessions_newest ON sessions (tenant, created_at, id);

CREATE TABLE artifacts (
	tenant      TEXT    NOT NULL,
	session_id  TEXT    NOT NULL,
	id          TEXT    NOT NULL,
	n           INTEGER NOT NULL,
	type        TEXT    NOT NULL,
	name        TEXT    NOT NULL,
	sha256      TEXT    NOT NULL,
	size        INTEGER NOT NULL,
	source_tool TEXT    NOT NULL,
	source_call TEXT    NOT NULL,
	parents     TEXT    NOT NULL, -- a JSON array
	labels      TEXT    NOT NULL, -- a JSON array
	metadata    TEXT    NOT NULL, -- JSON
	storage_uri TEXT    NOT NULL,
	created_at  INTEGER NOT NULL,
	PRIMARY KEY (tenant, session_id, id),
	UNIQUE (tenant, session_id, n)
);
CREATE INDEX artifacts_bytes ON artifacts (sha256, session_id);

-- What was spent of a budget, in millionths of a cent.
CREATE TABLE spend (
	tenant  TEXT    NOT NULL,
	subject TEXT    NOT NULL,
	period  TEXT    NOT NULL,
	amount  INTEGER NOT NULL,
	PRIMARY KEY (tenant, subject, period)
);

-- What belongs to the node that came first.
CREATE TABLE claims (
	name  TEXT    NOT NULL PRIMARY KEY,
	value TEXT    NOT NULL
);
