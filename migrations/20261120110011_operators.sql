-- +goose Up
-- modify "goods" table
ALTER TABLE "goods" ADD COLUMN "revision" bigint NOT NULL DEFAULT 1, ADD COLUMN "changed_by" uuid NULL;
-- modify "sale_items" table
ALTER TABLE "sale_items" ADD COLUMN "sold_out_at" timestamptz NULL;
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "notice" character varying NOT NULL DEFAULT '', ADD COLUMN "settled_at" timestamptz NULL, ADD COLUMN "captcha_required" boolean NOT NULL DEFAULT true, ADD COLUMN "captcha_kinds" character varying NOT NULL DEFAULT '', ADD COLUMN "permit_per_mille" bigint NOT NULL DEFAULT 1500, ADD COLUMN "inflow_per_second" bigint NOT NULL DEFAULT 0, ADD COLUMN "limit_burst" bigint NOT NULL DEFAULT 0, ADD COLUMN "limit_per_second" double precision NOT NULL DEFAULT 0;
-- create "interventions" table
CREATE TABLE "interventions" ("id" uuid NOT NULL, "sale_id" uuid NOT NULL, "item_id" uuid NOT NULL, "kind" character varying NOT NULL, "order_id" uuid NULL, "holder_id" uuid NULL, "quantity" bigint NOT NULL, "note" character varying NOT NULL, "state" character varying NOT NULL, "requested_by" uuid NOT NULL, "decided_by" uuid NULL, "decision" character varying NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "intervention_sale_id_id" to table: "interventions"
CREATE INDEX "intervention_sale_id_id" ON "interventions" ("sale_id", "id");
-- create index "intervention_state_id" to table: "interventions"
CREATE INDEX "intervention_state_id" ON "interventions" ("state", "id");
-- create "sale_figures" table
CREATE TABLE "sale_figures" ("id" uuid NOT NULL, "figures" text NOT NULL, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create "sale_logs" table
CREATE TABLE "sale_logs" ("id" uuid NOT NULL, "sale_id" uuid NOT NULL, "actor_id" uuid NULL, "act" character varying NOT NULL, "from_status" character varying NOT NULL, "to_status" character varying NOT NULL, "revision" bigint NOT NULL, "note" character varying NOT NULL DEFAULT '', "details" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "salelog_actor_id_id" to table: "sale_logs"
CREATE INDEX "salelog_actor_id_id" ON "sale_logs" ("actor_id", "id");
-- create index "salelog_sale_id_id" to table: "sale_logs"
CREATE INDEX "salelog_sale_id_id" ON "sale_logs" ("sale_id", "id");

-- +goose Down
-- reverse: create index "salelog_sale_id_id" to table: "sale_logs"
DROP INDEX "salelog_sale_id_id";
-- reverse: create index "salelog_actor_id_id" to table: "sale_logs"
DROP INDEX "salelog_actor_id_id";
-- reverse: create "sale_logs" table
DROP TABLE "sale_logs";
-- reverse: create "sale_figures" table
DROP TABLE "sale_figures";
-- reverse: create index "intervention_state_id" to table: "interventions"
DROP INDEX "intervention_state_id";
-- reverse: create index "intervention_sale_id_id" to table: "interventions"
DROP INDEX "intervention_sale_id_id";
-- reverse: create "interventions" table
DROP TABLE "interventions";
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "limit_per_second", DROP COLUMN "limit_burst", DROP COLUMN "inflow_per_second", DROP COLUMN "permit_per_mille", DROP COLUMN "captcha_kinds", DROP COLUMN "captcha_required", DROP COLUMN "settled_at", DROP COLUMN "notice";
-- reverse: modify "sale_items" table
ALTER TABLE "sale_items" DROP COLUMN "sold_out_at";
-- reverse: modify "goods" table
ALTER TABLE "goods" DROP COLUMN "changed_by", DROP COLUMN "revision";
