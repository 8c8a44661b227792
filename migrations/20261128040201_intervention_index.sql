-- +goose NO TRANSACTION
-- +goose Up
-- A build that was interrupted leaves an invalid index.
DROP INDEX CONCURRENTLY IF EXISTS "intervention_requested_by_created_at";
-- create index "intervention_requested_by_created_at"
CREATE INDEX CONCURRENTLY "intervention_requested_by_created_at" ON "interventions" ("requested_by", "created_at");

-- +goose Down
-- reverse: create index "intervention_requested_by_created_at"
DROP INDEX CONCURRENTLY IF EXISTS "intervention_requested_by_created_at";
