-- Agents: what they have, what was said with them, and what they remember.

-- +goose Up
CREATE TABLE agents (
	tenant     TEXT    NOT NULL,
	id         TEXT    NOT NULL,
	created_by TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	brain      TEXT    NOT NULL,
	tier       TEXT    NOT NULL,
	prompt     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON
	state      TEXT    NOT NULL,
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
);

CREATE TABLE assignments (
	tenant      TEXT    NOT NULL,
	subject     TEXT    NOT NULL, -- an agent, or * for all
	plugin      TEXT    NOT NULL,
	versions    TEXT    NOT NULL,
	enabled     INTEGER NOT NULL,
	assigned_by TEXT    NOT NULL,
	updated_at  INTEGER NOT NULL,
	PRIMARY KEY (tenant, subject, plugin)
);

CREATE TABLE conversations (
	tenant      TEXT    NOT NULL,
	session_id  TEXT    NOT NULL,
	agent       TEXT    NOT NULL,
	channel     TEXT    NOT NULL,
	peer        TEXT    NOT NULL,
	created_at  INTEGER NOT NULL,
	open        INTEGER NOT NULL,
	turns       INTEGER NOT NULL,
	received    INTEGER NOT NULL, -- the newest message that came in
	handled     INTEGER NOT NULL, -- the newest of these that has its turn behind it
	lease       TEXT    NOT NULL, -- of the turn
	lease_until INTEGER NOT NULL,
	updated_at  INTEGER NOT NULL,
	PRIMARY KEY (tenant, session_id)
);
CREATE INDEX conversations_waiting ON conversations (updated_at) WHERE handled < received AND open = 1;
CREATE INDEX conversations_idle ON conversations (updated_at) WHERE open = 1;
CREATE INDEX conversations_with ON conversations (tenant, agent, channel, peer, created_at);

CREATE TABLE messages (
	tenant     TEXT    NOT NULL,
	session_id TEXT    NOT NULL,
	n          INTEGER NOT NULL,
	role       TEXT    NOT NULL,
	body       BLOB    NOT NULL, -- JSON
	call_id    TEXT    NOT NULL,
	labels     TEXT    NOT NULL, -- a JSON array
	at         INTEGER NOT NULL,
	PRIMARY KEY (tenant, session_id, n)
);

CREATE TABLE memories (
	tenant     TEXT    NOT NULL,
	agent      TEXT    NOT NULL,
	key        TEXT    NOT NULL,
	content    TEXT    NOT NULL,
	labels     TEXT    NOT NULL, -- a JSON array
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, agent, key)
);

-- What was delivered once and is not taken a second time.
CREATE TABLE deliveries (
	tenant TEXT    NOT NULL,
	place  TEXT    NOT NULL, -- where it came in
	mark   TEXT    NOT NULL, -- its id, or its hash
	at     INTEGER NOT NULL,
	PRIMARY KEY (tenant, place, mark)
);

-- Events on their way to webhooks.
CREATE TABLE outbox (
	tenant     TEXT    NOT NULL,
	id         TEXT    NOT NULL,
	agent      TEXT    NOT NULL,
	plugin     TEXT    NOT NULL,
	event      TEXT    NOT NULL,
	body       BLOB    NOT NULL,
	created_at INTEGER NOT NULL,
	attempt    INTEGER NOT NULL,
	next_at    INTEGER NOT NULL, -- 0 once nobody tries any more
	problem    TEXT    NOT NULL,
	PRIMARY KEY (tenant, id)
);
CREATE INDEX outbox_due ON outbox (next_at) WHERE next_at > 0;
CREATE INDEX outbox_order ON outbox (tenant, agent, plugin, id) WHERE next_at > 0;
