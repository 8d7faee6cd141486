-- What is to be run when, and what became of each time.

-- +goose Up
CREATE TABLE schedules (
	tenant     TEXT    NOT NULL,
	id         TEXT    NOT NULL,
	owner_type TEXT    NOT NULL,
	owner_id   TEXT    NOT NULL,
	scopes     TEXT    NOT NULL, -- a JSON array
	operation  TEXT    NOT NULL,
	spec       TEXT    NOT NULL,
	zone       TEXT    NOT NULL,
	misfire    TEXT    NOT NULL,
	catch_up   INTEGER NOT NULL,
	overlap    TEXT    NOT NULL,
	overlay    TEXT    NOT NULL, -- JSON
	created_at INTEGER NOT NULL,
	input      TEXT    NOT NULL, -- JSON
	state      TEXT    NOT NULL,
	next_at    INTEGER NOT NULL, -- the next time that has no tick
	wake_at    INTEGER NOT NULL, -- when it is to be looked at
	last_call  TEXT    NOT NULL,
	revision   INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
);
CREATE INDEX schedules_due ON schedules (wake_at, id) WHERE state = 'active';

CREATE TABLE ticks (
	tenant      TEXT    NOT NULL,
	schedule_id TEXT    NOT NULL,
	tick_at     INTEGER NOT NULL, -- the intended time
	since       INTEGER NOT NULL, -- the first of the times that it stands for
	outcome     TEXT    NOT NULL,
	call_id     TEXT    NOT NULL,
	code        TEXT    NOT NULL,
	updated_at  INTEGER NOT NULL,
	PRIMARY KEY (tenant, schedule_id, tick_at)
);
