-- +goose Up
-- create "log_positions" table
CREATE TABLE "log_positions" ("id" uuid NOT NULL, "sale_id" uuid NOT NULL, "position" bigint NOT NULL, PRIMARY KEY ("id"));
-- create index "logposition_sale_id_position" to table: "log_positions"
CREATE UNIQUE INDEX "logposition_sale_id_position" ON "log_positions" ("sale_id", "position");
-- as the entries that the positions belong to
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_positions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- +goose Down
DROP TRIGGER append_only ON log_positions;
-- reverse: create index "logposition_sale_id_position" to table: "log_positions"
DROP INDEX "logposition_sale_id_position";
-- reverse: create "log_positions" table
DROP TABLE "log_positions";
