-- In which room, thread or issue of its channel a conversation takes place. Those
-- of before have none: they are not gone on with where a channel names rooms.

-- +goose Up
ALTER TABLE conversations ADD COLUMN room TEXT COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX conversations_with;
CREATE INDEX conversations_with ON conversations (tenant, agent, channel, room, peer, created_at);
