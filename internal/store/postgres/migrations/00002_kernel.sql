-- What the kernel keeps of work that waits, is repeated, or needs a person.

-- +goose Up
ALTER TABLE calls ADD COLUMN request_hash TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN journalled   BIGINT NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN cancelled    BIGINT NOT NULL DEFAULT 0;
CREATE INDEX calls_queued ON calls (id) WHERE state = 'queued';
CREATE INDEX calls_due ON calls (wake_at) WHERE wake_at <> 0;
CREATE INDEX calls_plan ON calls (tenant, plan_id, id) WHERE plan_id <> '';
CREATE INDEX calls_parent ON calls (tenant, parent_id, id) WHERE parent_id <> '';

CREATE TABLE effects (
	tenant        TEXT COLLATE "C" NOT NULL,
	call_id       TEXT COLLATE "C" NOT NULL,
	n             BIGINT NOT NULL,
	attempt       BIGINT NOT NULL,
	method        TEXT COLLATE "C" NOT NULL,
	class         TEXT COLLATE "C" NOT NULL,
	effect        TEXT COLLATE "C" NOT NULL,
	request_hash  TEXT COLLATE "C" NOT NULL,
	occurrence    BIGINT NOT NULL,
	provider_key  TEXT COLLATE "C" NOT NULL,
	state         TEXT COLLATE "C" NOT NULL,
	response_hash TEXT COLLATE "C" NOT NULL,
	at            BIGINT NOT NULL,
	PRIMARY KEY (tenant, call_id, n),
	UNIQUE (tenant, call_id, request_hash, occurrence)
);

CREATE TABLE approvals (
	tenant         TEXT COLLATE "C" NOT NULL,
	id             TEXT COLLATE "C" NOT NULL,
	subject_kind   TEXT COLLATE "C" NOT NULL,
	subject_id     TEXT COLLATE "C" NOT NULL,
	binding_hash   TEXT COLLATE "C" NOT NULL,
	preview_hash   TEXT COLLATE "C" NOT NULL,
	token_hash     TEXT COLLATE "C" NOT NULL,
	requester      TEXT COLLATE "C" NOT NULL,
	package_digest TEXT COLLATE "C" NOT NULL,
	policy_version TEXT COLLATE "C" NOT NULL,
	why            TEXT COLLATE "C" NOT NULL,
	created_at     BIGINT NOT NULL,
	expires_at     BIGINT NOT NULL,
	state          TEXT COLLATE "C" NOT NULL,
	decided_by     TEXT COLLATE "C" NOT NULL,
	reason         TEXT COLLATE "C" NOT NULL,
	decided_at     BIGINT NOT NULL,
	PRIMARY KEY (tenant, id)
);
CREATE INDEX approvals_subject ON approvals (tenant, subject_id, id);
CREATE UNIQUE INDEX approvals_token ON approvals (tenant, token_hash) WHERE token_hash <> '';
CREATE INDEX approvals_open ON approvals (expires_at) WHERE state = 'open';

CREATE TABLE plans (
	tenant        TEXT COLLATE "C" NOT NULL,
	id            TEXT COLLATE "C" NOT NULL,
	key           TEXT COLLATE "C" NOT NULL,
	agent         TEXT COLLATE "C" NOT NULL,
	proposal_call TEXT COLLATE "C" NOT NULL,
	plan_hash     TEXT COLLATE "C" NOT NULL,
	principal     TEXT COLLATE "C" NOT NULL,
	request_hash  TEXT COLLATE "C" NOT NULL,
	labels        TEXT COLLATE "C" NOT NULL, -- a JSON array
	created_at    BIGINT NOT NULL,
	state         TEXT COLLATE "C" NOT NULL,
	node          TEXT COLLATE "C" NOT NULL,
	lease         TEXT COLLATE "C" NOT NULL,
	code          TEXT COLLATE "C" NOT NULL,
	message       TEXT COLLATE "C" NOT NULL,
	updated_at    BIGINT NOT NULL,
	PRIMARY KEY (tenant, id),
	UNIQUE (tenant, key)
);
CREATE INDEX plans_queued ON plans (id) WHERE state = 'queued';
CREATE INDEX plans_running ON plans (node) WHERE state = 'running';

CREATE TABLE steps (
	tenant         TEXT COLLATE "C" NOT NULL,
	plan_id        TEXT COLLATE "C" NOT NULL,
	n              BIGINT NOT NULL,
	step_id        TEXT COLLATE "C" NOT NULL,
	operation      TEXT COLLATE "C" NOT NULL,
	version        TEXT COLLATE "C" NOT NULL,
	package_digest TEXT COLLATE "C" NOT NULL,
	input          TEXT COLLATE "C" NOT NULL,
	needs          TEXT COLLATE "C" NOT NULL, -- a JSON array
	gate           TEXT COLLATE "C" NOT NULL,
	why            TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (tenant, plan_id, n)
);

CREATE TABLE policies (
	tenant TEXT COLLATE "C" NOT NULL,
	name   TEXT COLLATE "C" NOT NULL,
	text   TEXT COLLATE "C" NOT NULL,
	put_by TEXT COLLATE "C" NOT NULL,
	put_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, name)
);

CREATE TABLE identities (
	tenant         TEXT COLLATE "C" NOT NULL,
	provider       TEXT COLLATE "C" NOT NULL,
	external_id    TEXT COLLATE "C" NOT NULL,
	principal_type TEXT COLLATE "C" NOT NULL,
	principal_id   TEXT COLLATE "C" NOT NULL,
	scopes         TEXT COLLATE "C" NOT NULL, -- a JSON array
	linked_by      TEXT COLLATE "C" NOT NULL,
	linked_at      BIGINT NOT NULL,
	PRIMARY KEY (tenant, provider, external_id)
);
