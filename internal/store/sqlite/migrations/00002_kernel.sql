-- What the kernel keeps of work that waits, is repeated, or needs a person.

-- +goose Up
ALTER TABLE calls ADD COLUMN request_hash TEXT    NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN journalled   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN cancelled    INTEGER NOT NULL DEFAULT 0;
CREATE INDEX calls_queued ON calls (id) WHERE state = 'queued';
CREATE INDEX calls_due ON calls (wake_at) WHERE wake_at <> 0;
CREATE INDEX calls_plan ON calls (tenant, plan_id, id) WHERE plan_id <> '';
CREATE INDEX calls_parent ON calls (tenant, parent_id, id) WHERE parent_id <> '';

-- The primary key is the order in which effects are read, and there is one
-- write for each of them, so there is no tree of row ids.
CREATE TABLE effects (
	tenant        TEXT    NOT NULL,
	call_id       TEXT    NOT NULL,
	n             INTEGER NOT NULL,
	attempt       INTEGER NOT NULL,
	method        TEXT    NOT NULL,
	class         TEXT    NOT NULL,
	effect        TEXT    NOT NULL,
	request_hash  TEXT    NOT NULL,
	occurrence    INTEGER NOT NULL,
	provider_key  TEXT    NOT NULL,
	state         TEXT    NOT NULL,
	response_hash TEXT    NOT NULL,
	at            INTEGER NOT NULL,
	PRIMARY KEY (tenant, call_id, n),
	UNIQUE (tenant, call_id, request_hash, occurrence)
) WITHOUT ROWID;

CREATE TABLE approvals (
	tenant         TEXT    NOT NULL,
	id             TEXT    NOT NULL,
	subject_kind   TEXT    NOT NULL,
	subject_id     TEXT    NOT NULL,
	binding_hash   TEXT    NOT NULL,
	preview_hash   TEXT    NOT NULL,
	token_hash     TEXT    NOT NULL,
	requester      TEXT    NOT NULL,
	package_digest TEXT    NOT NULL,
	policy_version TEXT    NOT NULL,
	why            TEXT    NOT NULL,
	created_at     INTEGER NOT NULL,
	expires_at     INTEGER NOT NULL,
	state          TEXT    NOT NULL,
	decided_by     TEXT    NOT NULL,
	reason         TEXT    NOT NULL,
	decided_at     INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
);
CREATE INDEX approvals_subject ON approvals (tenant, subject_id, id);
CREATE UNIQUE INDEX approvals_token ON approvals (tenant, token_hash) WHERE token_hash <> '';
CREATE INDEX approvals_open ON approvals (expires_at) WHERE state = 'open';

CREATE TABLE plans (
	tenant        TEXT    NOT NULL,
	id            TEXT    NOT NULL,
	key           TEXT    NOT NULL,
	agent         TEXT    NOT NULL,
	proposal_call TEXT    NOT NULL,
	plan_hash     TEXT    NOT NULL,
	principal     TEXT    NOT NULL,
	request_hash  TEXT    NOT NULL,
	labels        TEXT    NOT NULL, -- a JSON array
	created_at    INTEGER NOT NULL,
	state         TEXT    NOT NULL,
	node          TEXT    NOT NULL,
	lease         TEXT    NOT NULL,
	code          TEXT    NOT NULL,
	message       TEXT    NOT NULL,
	updated_at    INTEGER NOT NULL,
	PRIMARY KEY (tenant, id),
	UNIQUE (tenant, key)
);
CREATE INDEX plans_queued ON plans (id) WHERE state = 'queued';
CREATE INDEX plans_running ON plans (node) WHERE state = 'running';

CREATE TABLE steps (
	tenant         TEXT    NOT NULL,
	plan_id        TEXT    NOT NULL,
	n              INTEGER NOT NULL,
	step_id        TEXT    NOT NULL,
	operation      TEXT    NOT NULL,
	version        TEXT    NOT NULL,
	package_digest TEXT    NOT NULL,
	input          TEXT    NOT NULL,
	needs          TEXT    NOT NULL, -- a JSON array
	gate           TEXT    NOT NULL,
	why            TEXT    NOT NULL,
	PRIMARY KEY (tenant, plan_id, n)
);

CREATE TABLE policies (
	tenant TEXT    NOT NULL,
	name   TEXT    NOT NULL,
	text   TEXT    NOT NULL,
	put_by TEXT    NOT NULL,
	put_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, name)
);

CREATE TABLE identities (
	tenant         TEXT    NOT NULL,
	provider       TEXT    NOT NULL,
	external_id    TEXT    NOT NULL,
	principal_type TEXT    NOT NULL,
	principal_id   TEXT    NOT NULL,
	scopes         TEXT    NOT NULL, -- a JSON array
	linked_by      TEXT    NOT NULL,
	linked_at      INTEGER NOT NULL,
	PRIMARY KEY (tenant, provider, external_id)
);
