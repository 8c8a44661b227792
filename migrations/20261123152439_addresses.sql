-- +goose Up
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "requires_address" boolean NOT NULL DEFAULT false;
-- create "addresses" table
CREATE TABLE "addresses" ("id" uuid NOT NULL, "user_id" uuid NOT NULL, "slot" bigint NOT NULL, "is_default" boolean NOT NULL DEFAULT false, "created_at" timestamptz NOT NULL, "name" character varying NOT NULL, "phone" character varying NOT NULL, "country" character varying NOT NULL, "region" character varying NOT NULL DEFAULT '', "city" character varying NOT NULL, "street" character varying NOT NULL, "postal_code" character varying NOT NULL DEFAULT '', PRIMARY KEY ("id"));
-- create index "address_one_default_per_user" to table: "addresses"
CREATE UNIQUE INDEX "address_one_default_per_user" ON "addresses" ("user_id") WHERE is_default;
-- create index "address_user_id_slot" to table: "addresses"
CREATE UNIQUE INDEX "address_user_id_slot" ON "addresses" ("user_id", "slot");
-- create "fulfilments" table
CREATE TABLE "fulfilments" ("id" uuid NOT NULL, "state" character varying NOT NULL, "carrier" character varying NOT NULL DEFAULT '', "tracking_url" character varying NOT NULL DEFAULT '', "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create "order_recipients" table
CREATE TABLE "order_recipients" ("id" uuid NOT NULL, "user_id" uuid NOT NULL, "name" character varying NOT NULL, "phone" character varying NOT NULL, "country" character varying NOT NULL, "region" character varying NOT NULL DEFAULT '', "city" character varying NOT NULL, "street" character varying NOT NULL, "postal_code" character varying NOT NULL DEFAULT '', PRIMARY KEY ("id"));
-- create index "orderrecipient_user_id" to table: "order_recipients"
CREATE INDEX "orderrecipient_user_id" ON "order_recipients" ("user_id");

-- +goose Down
-- reverse: create index "orderrecipient_user_id" to table: "order_recipients"
DROP INDEX "orderrecipient_user_id";
-- reverse: create "order_recipients" table
DROP TABLE "order_recipients";
-- reverse: create "fulfilments" table
DROP TABLE "fulfilments";
-- reverse: create index "address_user_id_slot" to table: "addresses"
DROP INDEX "address_user_id_slot";
-- reverse: create index "address_one_default_per_user" to table: "addresses"
DROP INDEX "address_one_default_per_user";
-- reverse: create "addresses" table
DROP TABLE "addresses";
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "requires_address";
