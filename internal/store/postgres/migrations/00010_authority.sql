-- Who said something where: the one adapter that may speak of somebody, and the
-- authenticated identity behind who asks for an approval or makes a feed.

-- +goose Up
ALTER TABLE identities ADD COLUMN adapter TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN asker TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE schedules ADD COLUMN asker TEXT COLLATE "C" NOT NULL DEFAULT '';
