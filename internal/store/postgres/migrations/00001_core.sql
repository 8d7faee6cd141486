-- Times are microseconds UTC, 0 for none; texts are '' for none; flags are 0 or 1.
-- Texts are compared byte by byte, as everywhere else.

-- +goose Up
CREATE TABLE calls (
	tenant         TEXT COLLATE "C" NOT NULL,
	id             TEXT COLLATE "C" NOT NULL,
	operation      TEXT COLLATE "C" NOT NULL,
	key            TEXT COLLATE "C" NOT NULL,
	fingerprint    TEXT COLLATE "C" NOT NULL,
	principal      TEXT COLLATE "C" NOT NULL,
	actor          TEXT COLLATE "C" NOT NULL,
	agent          TEXT COLLATE "C" NOT NULL,
	origin         TEXT COLLATE "C" NOT NULL,
	parent_id      TEXT COLLATE "C" NOT NULL,
	plan_id        TEXT COLLATE "C" NOT NULL,
	session_id     TEXT COLLATE "C" NOT NULL,
	labels         TEXT COLLATE "C" NOT NULL, -- a JSON array
	version        TEXT COLLATE "C" NOT NULL,
	package_digest TEXT COLLATE "C" NOT NULL,
	policy_version TEXT COLLATE "C" NOT NULL,
	input_hash     TEXT COLLATE "C" NOT NULL,
	effectful      BIGINT NOT NULL,
	state          TEXT COLLATE "C" NOT NULL,
	attempt        BIGINT NOT NULL,
	lease          TEXT COLLATE "C" NOT NULL,
	node           TEXT COLLATE "C" NOT NULL,
	wake_at        BIGINT NOT NULL,
	deadline       BIGINT NOT NULL,
	result_hash    TEXT COLLATE "C" NOT NULL,
	code           TEXT COLLATE "C" NOT NULL,
	schema_version TEXT COLLATE "C" NOT NULL,
	created_at     BIGINT NOT NULL,
	updated_at     BIGINT NOT NULL,
	PRIMARY KEY (tenant, id),
	UNIQUE (tenant, operation, key)
);
CREATE INDEX calls_running ON calls (node) WHERE state = 'running';

CREATE TABLE entries (
	chain     BIGINT NOT NULL,
	seq       BIGINT NOT NULL,
	at        BIGINT NOT NULL,
	tenant    TEXT COLLATE "C" NOT NULL,
	kind      TEXT COLLATE "C" NOT NULL,
	subject   TEXT COLLATE "C" NOT NULL,
	principal TEXT COLLATE "C" NOT NULL,
	body      TEXT COLLATE "C" NOT NULL,
	prev      TEXT COLLATE "C" NOT NULL,
	hash      TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (chain, seq)
);
CREATE INDEX entries_subject ON entries (subject);
CREATE INDEX entries_newest ON entries (at, chain, seq);

-- A row for each chain, and its lock. seq is 0 before the first entry.
CREATE TABLE chains (
	id    BIGINT PRIMARY KEY,
	node  TEXT COLLATE "C" NOT NULL, -- who holds it, if that one is alive
	epoch BIGINT NOT NULL DEFAULT 0, -- raised by everyone who takes it
	mark  BIGINT NOT NULL DEFAULT 0, -- raised by every commit that appends nothing
	seq   BIGINT NOT NULL,
	head  TEXT COLLATE "C" NOT NULL,
	mac   TEXT COLLATE "C" NOT NULL
) WITH (fillfactor = 50); -- updated with every commit, and best in its place

CREATE TABLE bodies (
	tenant     TEXT COLLATE "C" NOT NULL,
	hash       TEXT COLLATE "C" NOT NULL,
	data BYTEA, -- NULL once erased
	expires_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, hash)
);

CREATE TABLE packages (
	digest TEXT COLLATE "C" PRIMARY KEY,
	source TEXT COLLATE "C" NOT NULL,
	signer TEXT COLLATE "C" NOT NULL
);

CREATE TABLE plugins (
	name           TEXT COLLATE "C" NOT NULL,
	version        TEXT COLLATE "C" NOT NULL,
	package_digest TEXT COLLATE "C" NOT NULL,
	path           TEXT COLLATE "C" NOT NULL,
	manifest       TEXT COLLATE "C" NOT NULL,
	state          TEXT COLLATE "C" NOT NULL,
	approved_by    TEXT COLLATE "C" NOT NULL,
	dev            BIGINT NOT NULL,
	registered_at  BIGINT NOT NULL,
	PRIMARY KEY (name, version)
);

CREATE TABLE nodes (
	id          TEXT COLLATE "C" PRIMARY KEY,
	addr        TEXT COLLATE "C" NOT NULL,
	epoch       BIGINT NOT NULL,
	started_at  BIGINT NOT NULL,
	lease_until BIGINT NOT NULL
);

-- What is true of the database as a whole.
CREATE TABLE site (
	name  TEXT COLLATE "C" PRIMARY KEY,
	value TEXT COLLATE "C" NOT NULL
);
