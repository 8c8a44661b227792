-- +goose Up
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "entry_seconds" bigint NOT NULL DEFAULT 0, ADD COLUMN "offer_seconds" bigint NOT NULL DEFAULT 0;
-- modify "waitlist_entries" table
ALTER TABLE "waitlist_entries" ADD COLUMN "nonce" character varying NULL, ADD COLUMN "line" bigint NOT NULL DEFAULT 0, ADD COLUMN "skipped" character varying NOT NULL DEFAULT '';
-- create "draw_leaves" table
CREATE TABLE "draw_leaves" ("id" uuid NOT NULL, "item_id" uuid NOT NULL, "first" bigint NOT NULL, "leaves" bytea NOT NULL, PRIMARY KEY ("id"));
-- create index "drawleaves_item_id_first" to table: "draw_leaves"
CREATE UNIQUE INDEX "drawleaves_item_id_first" ON "draw_leaves" ("item_id", "first");
-- create "item_draws" table
CREATE TABLE "item_draws" ("id" uuid NOT NULL, "sale_id" uuid NOT NULL, "state" character varying NOT NULL DEFAULT 'ENTRIES', "entries" bigint NOT NULL DEFAULT 0, "root" bytea NULL, "statement" text NOT NULL DEFAULT '', "round" bigint NOT NULL DEFAULT 0, "source" character varying NOT NULL DEFAULT '', "signature" bytea NULL, "value" character varying NOT NULL DEFAULT '', "closed_at" timestamptz NULL, "published_at" timestamptz NULL, "drawn_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "itemdraw_sale_id" to table: "item_draws"
CREATE INDEX "itemdraw_sale_id" ON "item_draws" ("sale_id");
-- create index "itemdraw_state" to table: "item_draws"
CREATE INDEX "itemdraw_state" ON "item_draws" ("state");

-- +goose Down
-- reverse: create index "itemdraw_state" to table: "item_draws"
DROP INDEX "itemdraw_state";
-- reverse: create index "itemdraw_sale_id" to table: "item_draws"
DROP INDEX "itemdraw_sale_id";
-- reverse: create "item_draws" table
DROP TABLE "item_draws";
-- reverse: create index "drawleaves_item_id_first" to table: "draw_leaves"
DROP INDEX "drawleaves_item_id_first";
-- reverse: create "draw_leaves" table
DROP TABLE "draw_leaves";
-- reverse: modify "waitlist_entries" table
ALTER TABLE "waitlist_entries" DROP COLUMN "skipped", DROP COLUMN "line", DROP COLUMN "nonce";
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "offer_seconds", DROP COLUMN "entry_seconds";
