-- What is to be run when, and what became of each time.

-- +goose Up
CREATE TABLE schedules (
	tenant     TEXT COLLATE "C" NOT NULL,
	id         TEXT COLLATE "C" NOT NULL,
	owner_type TEXT COLLATE "C" NOT NULL,
	owner_id   TEXT COLLATE "C" NOT NULL,
	scopes     TEXT COLLATE "C" NOT NULL, -- a JSON array
	operation  TEXT COLLATE "C" NOT NULL,
	spec       TEXT COLLATE "C" NOT NULL,
	zone       TEXT COLLATE "C" NOT NULL,
	misfire    TEXT COLLATE "C" NOT NULL,
	catch_up   BIGINT NOT NULL,
	overlap    TEXT COLLATE "C" NOT NULL,
	overlay    TEXT COLLATE "C" NOT NULL, -- JSON
	created_at BIGINT NOT NULL,
	input      TEXT COLLATE "C" NOT NULL, -- JSON
	state      TEXT COLLATE "C" NOT NULL,
	next_at    BIGINT NOT NULL, -- the next time that has no tick
	wake_at    BIGINT NOT NULL, -- when it is to be looked at
	last_call  TEXT COLLATE "C" NOT NULL,
	revision   BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, id)
);
CREATE INDEX schedules_due ON schedules (wake_at, id) WHERE state = 'active';

CREATE TABLE ticks (
	tenant      TEXT COLLATE "C" NOT NULL,
	schedule_id TEXT COLLATE "C" NOT NULL,
	tick_at     BIGINT NOT NULL, -- the intended time
	since       BIGINT NOT NULL, -- the first of the times that it stands for
	outcome     TEXT COLLATE "C" NOT NULL,
	call_id     TEXT COLLATE "C" NOT NULL,
	code        TEXT COLLATE "C" NOT NULL,
	updated_at  BIGINT NOT NULL,
	PRIMARY KEY (tenant, schedule_id, tick_at)
);
