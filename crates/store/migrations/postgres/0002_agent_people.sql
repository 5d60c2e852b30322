-- Whom an agent is shared with, and who else decides what it asks: ids of people, each between two blanks.
ALTER TABLE agents ADD COLUMN shared_with TEXT NOT NULL DEFAULT ' ';
ALTER TABLE agents ADD COLUMN approvers TEXT NOT NULL DEFAULT ' ';
