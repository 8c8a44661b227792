-- +goose Up
-- modify "interventions" table
ALTER TABLE "interventions" ADD COLUMN "extension_seconds" bigint NOT NULL DEFAULT 0;
UPDATE "interventions" SET "extension_seconds" = "quantity", "quantity" = 0 WHERE "kind" = 'EXTEND_SALE';
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "was_public" boolean NOT NULL DEFAULT false;
-- A cancelled sale stays public when buyers saw it before.
UPDATE "sales" s SET "was_public" = true WHERE s."status" = 'CANCELLED' AND EXISTS (SELECT FROM "sale_logs" l
  WHERE l."sale_id" = s."id" AND l."to_status" = 'CANCELLED' AND l."from_status" IN ('SCHEDULED', 'PREHEATED', 'LIVE', 'PAUSED'));
-- create "sale_templates" table
CREATE TABLE "sale_templates" ("id" uuid NOT NULL, "name" character varying NOT NULL, "content" text NOT NULL, "saved_by" uuid NOT NULL, "saved_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "saletemplate_name" to table: "sale_templates"
CREATE UNIQUE INDEX "saletemplate_name" ON "sale_templates" ("name");

-- +goose Down
-- reverse: create index "saletemplate_name" to table: "sale_templates"
DROP INDEX "saletemplate_name";
-- reverse: create "sale_templates" table
DROP TABLE "sale_templates";
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "was_public";
-- reverse: modify "interventions" table
UPDATE "interventions" SET "quantity" = GREATEST("extension_seconds", 1) WHERE "kind" = 'EXTEND_SALE';
ALTER TABLE "interventions" DROP COLUMN "extension_seconds";
