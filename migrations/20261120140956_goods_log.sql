-- +goose Up
-- create "goods_logs" table
CREATE TABLE "goods_logs" ("id" uuid NOT NULL, "goods_id" uuid NOT NULL, "actor_id" uuid NOT NULL, "act" character varying NOT NULL, "revision" bigint NOT NULL, "note" character varying NOT NULL DEFAULT '', "details" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "goodslog_goods_id_id" to table: "goods_logs"
CREATE INDEX "goodslog_goods_id_id" ON "goods_logs" ("goods_id", "id");

-- +goose Down
-- reverse: create index "goodslog_goods_id_id" to table: "goods_logs"
DROP INDEX "goodslog_goods_id_id";
-- reverse: create "goods_logs" table
DROP TABLE "goods_logs";
