-- What the heads of chains sign of calls and plans that have not ended, and what
-- sessions and artifacts are signed with.

-- +goose Up
ALTER TABLE calls ADD COLUMN digest TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE plans ADD COLUMN digest TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX calls_live ON calls (digest) WHERE state NOT IN ('succeeded', 'failed');
CREATE INDEX plans_live ON plans (digest) WHERE state NOT IN ('succeeded', 'failed', 'cancelled');
ALTER TABLE sessions ADD COLUMN mac TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE artifacts ADD COLUMN mac TEXT COLLATE "C" NOT NULL DEFAULT '';
