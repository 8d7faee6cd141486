-- In which room, thread or issue of its channel a conversation takes place. Those
-- of before have none: of a channel that names rooms nobody goes on with them.

-- +goose Up
ALTER TABLE conversations ADD COLUMN room TEXT COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX conversations_with;
CREATE INDEX conversations_with ON conversations (tenant, agent, channel, room, peer, created_at);
