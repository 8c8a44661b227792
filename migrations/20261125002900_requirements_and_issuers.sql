-- +goose Up
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "requires_verified_contact" boolean NOT NULL DEFAULT false, ADD COLUMN "minimum_account_age_hours" bigint NOT NULL DEFAULT 0;
-- modify "sessions" table
ALTER TABLE "sessions" ADD COLUMN "issuer" character varying NOT NULL DEFAULT '';

-- +goose Down
-- reverse: modify "sessions" table
ALTER TABLE "sessions" DROP COLUMN "issuer";
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "minimum_account_age_hours", DROP COLUMN "requires_verified_contact";
