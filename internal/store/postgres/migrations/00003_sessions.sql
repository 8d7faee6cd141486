-- What investigations keep, and what was spent.

-- +goose Up
CREATE TABLE sessions (
	tenant     TEXT COLLATE "C" NOT NULL,
	id         TEXT COLLATE "C" NOT NULL,
	name       TEXT COLLATE "C" NOT NULL,
	kind       TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	pillar     TEXT COLLATE "C" NOT NULL,
	state      TEXT COLLATE "C" NOT NULL,
	labels     TEXT COLLATE "C" NOT NULL, -- a JSON array
	artifacts  BIGINT NOT NULL, -- how many it has
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, id)
);
CREATE INDEX sessions_newest ON sessions (tenant, created_at, id);

CREATE TABLE artifacts (
	tenant      TEXT COLLATE "C" NOT NULL,
	session_id  TEXT COLLATE "C" NOT NULL,
	id          TEXT COLLATE "C" NOT NULL,
	n           BIGINT NOT NULL,
	type        TEXT COLLATE "C" NOT NULL,
	name        TEXT COLLATE "C" NOT NULL,
	sha256      TEXT COLLATE "C" NOT NULL,
	size        BIGINT NOT NULL,
	source_tool TEXT COLLATE "C" NOT NULL,
	source_call TEXT COLLATE "C" NOT NULL,
	parents     TEXT COLLATE "C" NOT NULL, -- a JSON array
	labels      TEXT COLLATE "C" NOT NULL, -- a JSON array
	metadata    TEXT COLLATE "C" NOT NULL, -- JSON
	storage_uri TEXT COLLATE "C" NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (tenant, session_id, id),
	UNIQUE (tenant, session_id, n)
);
CREATE INDEX artifacts_bytes ON artifacts (sha256, session_id);

-- What was spent of a budget, in millionths of a cent.
CREATE TABLE spend (
	tenant  TEXT COLLATE "C" NOT NULL,
	subject TEXT COLLATE "C" NOT NULL,
	period  TEXT COLLATE "C" NOT NULL,
	amount  BIGINT NOT NULL,
	PRIMARY KEY (tenant, subject, period)
);

-- What belongs to the node that came first.
CREATE TABLE claims (
	name  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	value TEXT COLLATE "C" NOT NULL
);
