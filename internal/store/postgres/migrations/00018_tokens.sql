-- API tokens: which principal a token stands for, and what may be done with it.

-- +goose Up
CREATE TABLE tokens (
	tenant         TEXT COLLATE "C" NOT NULL,
	id             TEXT COLLATE "C" NOT NULL,
	hash           TEXT COLLATE "C" NOT NULL, -- of the secret
	name           TEXT COLLATE "C" NOT NULL, -- what it is for
	principal_type TEXT COLLATE "C" NOT NULL,
	principal_id   TEXT COLLATE "C" NOT NULL,
	scopes         TEXT COLLATE "C" NOT NULL, -- a JSON array
	operations     TEXT COLLATE "C" NOT NULL, -- a JSON array
	created_by     TEXT COLLATE "C" NOT NULL,
	asker          TEXT COLLATE "C" NOT NULL, -- who has seen the secret
	created_at     BIGINT NOT NULL,
	expires_at     BIGINT NOT NULL,
	revoked_at     BIGINT NOT NULL,
	used_at        BIGINT NOT NULL,
	used_from      TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (id)
);
CREATE INDEX tokens_newest ON tokens (tenant, id);
