-- +goose Up
-- modify "orders" table
ALTER TABLE "orders" ADD COLUMN "network_key" character varying NULL, ADD COLUMN "device_key" character varying NULL, ADD COLUMN "review" character varying NULL, ADD COLUMN "review_at" timestamptz NULL, ADD COLUMN "review_kinds" character varying NOT NULL DEFAULT '', ADD COLUMN "review_answer" character varying NULL;
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "review_accounts" bigint NOT NULL DEFAULT 0;

-- +goose Down
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "review_accounts";
-- reverse: modify "orders" table
ALTER TABLE "orders" DROP COLUMN "review_answer", DROP COLUMN "review_kinds", DROP COLUMN "review_at", DROP COLUMN "review", DROP COLUMN "device_key", DROP COLUMN "network_key";
