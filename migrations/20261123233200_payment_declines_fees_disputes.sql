-- +goose Up
-- modify "payments" table
ALTER TABLE "payments" ADD COLUMN "failure_code" character varying NOT NULL DEFAULT '', ADD COLUMN "fee_minor" bigint NULL, ADD COLUMN "fee_currency" character varying NOT NULL DEFAULT '', ADD COLUMN "dispute" character varying NOT NULL DEFAULT 'NONE';
-- modify "sandbox_charges" table
ALTER TABLE "sandbox_charges" ADD COLUMN "decline_code" character varying NOT NULL DEFAULT '';

-- +goose Down
-- reverse: modify "sandbox_charges" table
ALTER TABLE "sandbox_charges" DROP COLUMN "decline_code";
-- reverse: modify "payments" table
ALTER TABLE "payments" DROP COLUMN "dispute", DROP COLUMN "fee_currency", DROP COLUMN "fee_minor", DROP COLUMN "failure_code";
