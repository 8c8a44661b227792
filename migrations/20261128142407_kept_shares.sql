-- +goose Up
-- modify "waitlist_entries" table
ALTER TABLE "waitlist_entries" ADD COLUMN "access_keys" character varying NULL;

-- +goose Down
-- reverse: modify "waitlist_entries" table
ALTER TABLE "waitlist_entries" DROP COLUMN "access_keys";
