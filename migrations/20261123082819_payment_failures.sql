-- +goose Up
-- modify "payments" table
ALTER TABLE "payments" ADD COLUMN "declined" boolean NOT NULL DEFAULT false;
-- modify "refunds" table
ALTER TABLE "refunds" ADD COLUMN "decided_at" timestamptz NULL;

-- +goose Down
-- reverse: modify "refunds" table
ALTER TABLE "refunds" DROP COLUMN "decided_at";
-- reverse: modify "payments" table
ALTER TABLE "payments" DROP COLUMN "declined";
