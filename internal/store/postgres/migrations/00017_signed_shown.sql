-- What conversations and the steps of plans are signed with, and the hash of the effects
-- of a call that no attempt is at work on.

-- +goose Up
ALTER TABLE conversations ADD COLUMN mac TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE steps ADD COLUMN mac TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN journal TEXT COLLATE "C" NOT NULL DEFAULT '';
