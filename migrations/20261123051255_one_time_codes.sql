-- +goose Up
-- modify "users" table
ALTER TABLE "users" ADD COLUMN "totp_secret" bytea NULL, ADD COLUMN "totp_since" timestamptz NULL, ADD COLUMN "totp_step" bigint NOT NULL DEFAULT 0, ADD COLUMN "recovery_codes" character varying NOT NULL DEFAULT '';

-- +goose Down
-- reverse: modify "users" table
ALTER TABLE "users" DROP COLUMN "recovery_codes", DROP COLUMN "totp_step", DROP COLUMN "totp_since", DROP COLUMN "totp_secret";
