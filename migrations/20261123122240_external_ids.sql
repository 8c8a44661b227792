-- +goose Up
-- modify "goods" table
ALTER TABLE "goods" ADD COLUMN "external_id" character varying NULL, ADD COLUMN "sku" character varying NULL;
-- create index "goods_external_id" to table: "goods"
CREATE UNIQUE INDEX "goods_external_id" ON "goods" ("external_id");
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "external_reference" character varying NULL;
-- create index "sale_external_reference" to table: "sales"
CREATE UNIQUE INDEX "sale_external_reference" ON "sales" ("external_reference");

-- +goose Down
-- reverse: create index "sale_external_reference" to table: "sales"
DROP INDEX "sale_external_reference";
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "external_reference";
-- reverse: create index "goods_external_id" to table: "goods"
DROP INDEX "goods_external_id";
-- reverse: modify "goods" table
ALTER TABLE "goods" DROP COLUMN "sku", DROP COLUMN "external_id";
