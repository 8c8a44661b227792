-- +goose Up
-- create "acceptance_entries" table
CREATE TABLE "acceptance_entries" ("id" uuid NOT NULL, "sale_id" uuid NOT NULL, "position" bigint NOT NULL, "entry" character varying NOT NULL, "nodes" bytea NULL, PRIMARY KEY ("id"));
-- create index "acceptanceentry_sale_id_position" to table: "acceptance_entries"
CREATE UNIQUE INDEX "acceptanceentry_sale_id_position" ON "acceptance_entries" ("sale_id", "position");
-- outsiders keep checkpoints of it
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON acceptance_entries FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- +goose Down
DROP TRIGGER append_only ON acceptance_entries;
-- reverse: create index "acceptanceentry_sale_id_position" to table: "acceptance_entries"
DROP INDEX "acceptanceentry_sale_id_position";
-- reverse: create "acceptance_entries" table
DROP TABLE "acceptance_entries";
