-- +goose Up
-- modify "users" table
ALTER TABLE "users" ADD COLUMN "external_id" character varying NULL;
-- create "order_metadata" table
CREATE TABLE "order_metadata" ("id" uuid NOT NULL, "entries" bytea NOT NULL, "version" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));

-- +goose Down
-- reverse: create "order_metadata" table
DROP TABLE "order_metadata";
-- reverse: modify "users" table
ALTER TABLE "users" DROP COLUMN "external_id";
