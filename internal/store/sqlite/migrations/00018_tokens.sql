-- API tokens: which principal a token stands for, and what may be done with it.

-- +goose Up
CREATE TABLE tokens (
	tenant         TEXT    NOT NULL,
	id             TEXT    NOT NULL,
	hash           TEXT    NOT NULL, -- of the secret
	name           TEXT    NOT NULL, -- what it is for
	principal_type TEXT    NOT NULL,
	principal_id   TEXT    NOT NULL,
	scopes         TEXT    NOT NULL, -- a JSON array
	operations     TEXT    NOT NULL, -- a JSON array
	created_by     TEXT    NOT NULL,
	asker          TEXT    NOT NULL, -- who has seen the secret
	created_at     INTEGER NOT NULL,
	expires_at     INTEGER NOT NULL,
	revoked_at     INTEGER NOT NULL,
	used_at        INTEGER NOT NULL,
	used_from      TEXT    NOT NULL,
	PRIMARY KEY (id)
);
CREATE INDEX tokens_newest ON tokens (tenant, id);
