-- +goose Up
-- create "goods" table
CREATE TABLE "goods" ("id" uuid NOT NULL, "name" character varying NOT NULL, "description" text NOT NULL DEFAULT '', "image_url" character varying NULL, "list_price_minor" bigint NOT NULL, "currency" character varying NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "goods_created_at_id" to table: "goods"
CREATE INDEX "goods_created_at_id" ON "goods" ("created_at", "id");
-- create "orders" table
CREATE TABLE "orders" ("id" uuid NOT NULL, "number" character varying NOT NULL, "sale_id" uuid NOT NULL, "item_id" uuid NOT NULL, "user_id" uuid NOT NULL, "batch_id" uuid NOT NULL, "kind" character varying NOT NULL DEFAULT 'SECKILL', "status" character varying NOT NULL DEFAULT 'PENDING_PAYMENT', "quantity" bigint NOT NULL, "unit_price_minor" bigint NOT NULL, "currency" character varying NOT NULL, "version" bigint NOT NULL DEFAULT 1, "epoch" bigint NOT NULL, "reserved_at" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, "payment_deadline" timestamptz NULL, "paid_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "order_item_id_status" to table: "orders"
CREATE INDEX "order_item_id_status" ON "orders" ("item_id", "status");
-- create index "order_number" to table: "orders"
CREATE UNIQUE INDEX "order_number" ON "orders" ("number");
-- create index "order_one_live_per_user_and_item" to table: "orders"
CREATE UNIQUE INDEX "order_one_live_per_user_and_item" ON "orders" ("item_id", "user_id") WHERE status IN ('PENDING_PAYMENT', 'PAID', 'REFUNDING');
-- create index "order_sale_id_created_at" to table: "orders"
CREATE INDEX "order_sale_id_created_at" ON "orders" ("sale_id", "created_at");
-- create index "order_status_payment_deadline" to table: "orders"
CREATE INDEX "order_status_payment_deadline" ON "orders" ("status", "payment_deadline");
-- create index "order_user_id_created_at" to table: "orders"
CREATE INDEX "order_user_id_created_at" ON "orders" ("user_id", "created_at");
-- create "order_failures" table
CREATE TABLE "order_failures" ("id" uuid NOT NULL, "sale_id" uuid NOT NULL, "item_id" uuid NOT NULL, "user_id" uuid NOT NULL, "quantity" bigint NOT NULL, "code" character varying NOT NULL, "reason" character varying NOT NULL, "released" boolean NOT NULL DEFAULT false, "reserved_at" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "orderfailure_released" to table: "order_failures"
CREATE INDEX "orderfailure_released" ON "order_failures" ("released");
-- create index "orderfailure_user_id_created_at" to table: "order_failures"
CREATE INDEX "orderfailure_user_id_created_at" ON "order_failures" ("user_id", "created_at");
-- create "sales" table
CREATE TABLE "sales" ("id" uuid NOT NULL, "slug" character varying NOT NULL, "title" character varying NOT NULL, "rules" text NOT NULL DEFAULT '', "status" character varying NOT NULL DEFAULT 'DRAFT', "starts_at" timestamptz NOT NULL, "ends_at" timestamptz NOT NULL, "preheat_at" timestamptz NOT NULL, "payment_window_seconds" bigint NOT NULL, "purchase_limit" bigint NOT NULL, "hide_exact_stock" boolean NOT NULL DEFAULT false, "epoch" bigint NOT NULL DEFAULT 0, "revision" bigint NOT NULL DEFAULT 1, "created_by" uuid NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "sale_created_at_id" to table: "sales"
CREATE INDEX "sale_created_at_id" ON "sales" ("created_at", "id");
-- create index "sale_slug" to table: "sales"
CREATE UNIQUE INDEX "sale_slug" ON "sales" ("slug");
-- create index "sale_starts_at_id" to table: "sales"
CREATE INDEX "sale_starts_at_id" ON "sales" ("starts_at", "id");
-- create index "sale_status" to table: "sales"
CREATE INDEX "sale_status" ON "sales" ("status");
-- create "sale_items" table
CREATE TABLE "sale_items" ("id" uuid NOT NULL, "sale_id" uuid NOT NULL, "goods_id" uuid NOT NULL, "position" bigint NOT NULL, "price_minor" bigint NOT NULL, "currency" character varying NOT NULL, "total" bigint NOT NULL, "available" bigint NOT NULL, "held" bigint NOT NULL DEFAULT 0, "sold" bigint NOT NULL DEFAULT 0, "revision" bigint NOT NULL DEFAULT 1, PRIMARY KEY ("id"), CONSTRAINT "stock_conserved" CHECK (((available + held) + sold) = total), CONSTRAINT "stock_not_negative" CHECK ((available >= 0) AND (held >= 0) AND (sold >= 0)));
-- create index "saleitem_goods_id" to table: "sale_items"
CREATE INDEX "saleitem_goods_id" ON "sale_items" ("goods_id");
-- create index "saleitem_sale_id_position" to table: "sale_items"
CREATE UNIQUE INDEX "saleitem_sale_id_position" ON "sale_items" ("sale_id", "position");
-- create "sessions" table
CREATE TABLE "sessions" ("id" uuid NOT NULL, "user_id" uuid NOT NULL, "token_hash" bytea NOT NULL, "previous_hash" bytea NULL, "generation" bigint NOT NULL DEFAULT 1, "created_at" timestamptz NOT NULL, "rotated_at" timestamptz NOT NULL, "expires_at" timestamptz NOT NULL, "revoked_at" timestamptz NULL, "revoked_reason" character varying NULL, PRIMARY KEY ("id"));
-- create index "session_expires_at" to table: "sessions"
CREATE INDEX "session_expires_at" ON "sessions" ("expires_at");
-- create index "session_previous_hash" to table: "sessions"
CREATE INDEX "session_previous_hash" ON "sessions" ("previous_hash");
-- create index "session_token_hash" to table: "sessions"
CREATE UNIQUE INDEX "session_token_hash" ON "sessions" ("token_hash");
-- create index "session_user_id" to table: "sessions"
CREATE INDEX "session_user_id" ON "sessions" ("user_id");
-- create "stock_movements" table
CREATE TABLE "stock_movements" ("id" uuid NOT NULL, "order_id" uuid NOT NULL, "item_id" uuid NOT NULL, "kind" character varying NOT NULL, "quantity" bigint NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "stockmovement_item_id" to table: "stock_movements"
CREATE INDEX "stockmovement_item_id" ON "stock_movements" ("item_id");
-- create index "stockmovement_order_id_kind" to table: "stock_movements"
CREATE UNIQUE INDEX "stockmovement_order_id_kind" ON "stock_movements" ("order_id", "kind");
-- create "users" table
CREATE TABLE "users" ("id" uuid NOT NULL, "account" character varying NOT NULL, "display_name" character varying NOT NULL, "password_hash" character varying NOT NULL, "role" character varying NOT NULL DEFAULT 'CUSTOMER', "version" bigint NOT NULL DEFAULT 1, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "user_account" to table: "users"
CREATE UNIQUE INDEX "user_account" ON "users" ("account");

-- +goose Down
-- reverse: create index "user_account" to table: "users"
DROP INDEX "user_account";
-- reverse: create "users" table
DROP TABLE "users";
-- reverse: create index "stockmovement_order_id_kind" to table: "stock_movements"
DROP INDEX "stockmovement_order_id_kind";
-- reverse: create index "stockmovement_item_id" to table: "stock_movements"
DROP INDEX "stockmovement_item_id";
-- reverse: create "stock_movements" table
DROP TABLE "stock_movements";
-- reverse: create index "session_user_id" to table: "sessions"
DROP INDEX "session_user_id";
-- reverse: create index "session_token_hash" to table: "sessions"
DROP INDEX "session_token_hash";
-- reverse: create index "session_previous_hash" to table: "sessions"
DROP INDEX "session_previous_hash";
-- reverse: create index "session_expires_at" to table: "sessions"
DROP INDEX "session_expires_at";
-- reverse: create "sessions" table
DROP TABLE "sessions";
-- reverse: create index "saleitem_sale_id_position" to table: "sale_items"
DROP INDEX "saleitem_sale_id_position";
-- reverse: create index "saleitem_goods_id" to table: "sale_items"
DROP INDEX "saleitem_goods_id";
-- reverse: create "sale_items" table
DROP TABLE "sale_items";
-- reverse: create index "sale_status" to table: "sales"
DROP INDEX "sale_status";
-- reverse: create index "sale_starts_at_id" to table: "sales"
DROP INDEX "sale_starts_at_id";
-- reverse: create index "sale_slug" to table: "sales"
DROP INDEX "sale_slug";
-- reverse: create index "sale_created_at_id" to table: "sales"
DROP INDEX "sale_created_at_id";
-- reverse: create "sales" table
DROP TABLE "sales";
-- reverse: create index "orderfailure_user_id_created_at" to table: "order_failures"
DROP INDEX "orderfailure_user_id_created_at";
-- reverse: create index "orderfailure_released" to table: "order_failures"
DROP INDEX "orderfailure_released";
-- reverse: create "order_failures" table
DROP TABLE "order_failures";
-- reverse: create index "order_user_id_created_at" to table: "orders"
DROP INDEX "order_user_id_created_at";
-- reverse: create index "order_status_payment_deadline" to table: "orders"
DROP INDEX "order_status_payment_deadline";
-- reverse: create index "order_sale_id_created_at" to table: "orders"
DROP INDEX "order_sale_id_created_at";
-- reverse: create index "order_one_live_per_user_and_item" to table: "orders"
DROP INDEX "order_one_live_per_user_and_item";
-- reverse: create index "order_number" to table: "orders"
DROP INDEX "order_number";
-- reverse: create index "order_item_id_status" to table: "orders"
DROP INDEX "order_item_id_status";
-- reverse: create "orders" table
DROP TABLE "orders";
-- reverse: create index "goods_created_at_id" to table: "goods"
DROP INDEX "goods_created_at_id";
-- reverse: create "goods" table
DROP TABLE "goods";
