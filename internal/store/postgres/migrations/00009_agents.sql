-- Agents: what they have, what was said with them, and what they remember.

-- +goose Up
CREATE TABLE agents (
	tenant     TEXT COLLATE "C" NOT NULL,
	id         TEXT COLLATE "C" NOT NULL,
	created_by TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	brain      TEXT COLLATE "C" NOT NULL,
	tier       TEXT COLLATE "C" NOT NULL,
	prompt     TEXT COLLATE "C" NOT NULL,
	settings   TEXT COLLATE "C" NOT NULL, -- JSON
	state      TEXT COLLATE "C" NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, id)
);

CREATE TABLE assignments (
	tenant      TEXT COLLATE "C" NOT NULL,
	subject     TEXT COLLATE "C" NOT NULL, -- an agent, or * for all
	plugin      TEXT COLLATE "C" NOT NULL,
	versions    TEXT COLLATE "C" NOT NULL,
	enabled     BIGINT NOT NULL,
	assigned_by TEXT COLLATE "C" NOT NULL,
	updated_at  BIGINT NOT NULL,
	PRIMARY KEY (tenant, subject, plugin)
);

CREATE TABLE conversations (
	tenant      TEXT COLLATE "C" NOT NULL,
	session_id  TEXT COLLATE "C" NOT NULL,
	agent       TEXT COLLATE "C" NOT NULL,
	channel     TEXT COLLATE "C" NOT NULL,
	peer        TEXT COLLATE "C" NOT NULL,
	created_at  BIGINT NOT NULL,
	open        BIGINT NOT NULL,
	turns       BIGINT NOT NULL,
	received    BIGINT NOT NULL, -- the newest message that came in
	handled     BIGINT NOT NULL, -- the newest of these that has its turn behind it
	lease       TEXT COLLATE "C" NOT NULL, -- of the turn
	lease_until BIGINT NOT NULL,
	updated_at  BIGINT NOT NULL,
	PRIMARY KEY (tenant, session_id)
);
CREATE INDEX conversations_waiting ON conversations (updated_at) WHERE handled < received AND open = 1;
CREATE INDEX conversations_idle ON conversations (updated_at) WHERE open = 1;
CREATE INDEX conversations_with ON conversations (tenant, agent, channel, peer, created_at);

CREATE TABLE messages (
	tenant     TEXT COLLATE "C" NOT NULL,
	session_id TEXT COLLATE "C" NOT NULL,
	n          BIGINT NOT NULL,
	role       TEXT COLLATE "C" NOT NULL,
	body       BYTEA NOT NULL, -- JSON
	call_id    TEXT COLLATE "C" NOT NULL,
	labels     TEXT COLLATE "C" NOT NULL, -- a JSON array
	at         BIGINT NOT NULL,
	PRIMARY KEY (tenant, session_id, n)
);

CREATE TABLE memories (
	tenant     TEXT COLLATE "C" NOT NULL,
	agent      TEXT COLLATE "C" NOT NULL,
	key        TEXT COLLATE "C" NOT NULL,
	content    TEXT COLLATE "C" NOT NULL,
	labels     TEXT COLLATE "C" NOT NULL, -- a JSON array
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, agent, key)
);

-- What was delivered once and is not taken a second time.
CREATE TABLE deliveries (
	tenant TEXT COLLATE "C" NOT NULL,
	place  TEXT COLLATE "C" NOT NULL, -- where it came in
	mark   TEXT COLLATE "C" NOT NULL, -- its id, or its hash
	at     BIGINT NOT NULL,
	PRIMARY KEY (tenant, place, mark)
);

-- Events on their way to webhooks.
CREATE TABLE outbox (
	tenant     TEXT COLLATE "C" NOT NULL,
	id         TEXT COLLATE "C" NOT NULL,
	agent      TEXT COLLATE "C" NOT NULL,
	plugin     TEXT COLLATE "C" NOT NULL,
	event      TEXT COLLATE "C" NOT NULL,
	body       BYTEA NOT NULL,
	created_at BIGINT NOT NULL,
	attempt    BIGINT NOT NULL,
	next_at    BIGINT NOT NULL, -- 0 once nobody tries any more
	problem    TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (tenant, id)
);
CREATE INDEX outbox_due ON outbox (next_at) WHERE next_at > 0;
CREATE INDEX outbox_order ON outbox (tenant, agent, plugin, id) WHERE next_at > 0;
