-- +goose Up
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "access_codes" text NOT NULL DEFAULT '', ADD COLUMN "private" boolean NOT NULL DEFAULT false;

-- +goose Down
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "private", DROP COLUMN "access_codes";
