-- Free fields of whoever made a chat: JSON, sealed. None of the chats that are there has any.
ALTER TABLE chats ADD COLUMN metadata BYTEA;
