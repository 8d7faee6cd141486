-- What plugins keep for themselves, and secrets.

-- +goose Up
CREATE TABLE kv (
	tenant     TEXT COLLATE "C" NOT NULL,
	owner      TEXT COLLATE "C" NOT NULL, -- a plugin
	scope      TEXT COLLATE "C" NOT NULL, -- for whom it keeps this
	namespace  TEXT COLLATE "C" NOT NULL,
	key        TEXT COLLATE "C" NOT NULL,
	value      BYTEA NOT NULL,
	labels     TEXT COLLATE "C" NOT NULL, -- a JSON array
	expires_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, owner, scope, namespace, key)
);

-- What secrets are encrypted with, itself encrypted with a key that is kept
-- outside the database. The last is the one that is used.
CREATE TABLE secret_keys (
	n          BIGINT NOT NULL PRIMARY KEY, -- from 1
	master     TEXT COLLATE "C" NOT NULL, -- the fingerprint of the key outside
	wrapped    BYTEA NOT NULL,
	created_at BIGINT NOT NULL
);

CREATE TABLE secrets (
	tenant     TEXT COLLATE "C" NOT NULL,
	owner      TEXT COLLATE "C" NOT NULL, -- a plugin, or * for all
	scope      TEXT COLLATE "C" NOT NULL, -- user, system
	subject    TEXT COLLATE "C" NOT NULL, -- the user; empty for the system
	name       TEXT COLLATE "C" NOT NULL,
	ciphertext BYTEA NOT NULL,
	key_id     BIGINT NOT NULL, -- the n of its key
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, owner, scope, subject, name)
);
CREATE INDEX secrets_keys ON secrets (key_id);

CREATE INDEX identities_principal ON identities (tenant, principal_type, principal_id);
