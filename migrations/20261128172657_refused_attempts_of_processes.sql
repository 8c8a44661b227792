-- +goose NO TRANSACTION
-- +goose Up
-- Rows are written while the index is built. A build that was interrupted leaves an invalid one.
-- create index "refusedattempt_user_id" to table: "refused_attempts"
DROP INDEX CONCURRENTLY IF EXISTS "refusedattempt_user_id";
CREATE INDEX CONCURRENTLY "refusedattempt_user_id" ON "refused_attempts" USING hash ("user_id");
-- drop index "refusedattempt_last_at" from table: "refused_attempts"
DROP INDEX CONCURRENTLY IF EXISTS "refusedattempt_last_at";
-- drop index "refusedattempt_user_id_sale_id_item_id_stage_code" from table: "refused_attempts"
DROP INDEX CONCURRENTLY IF EXISTS "refusedattempt_user_id_sale_id_item_id_stage_code";

-- +goose Down
-- processes count apart: the newest row of each stays
DELETE FROM refused_attempts r USING refused_attempts n WHERE n.id > r.id
  AND (n.user_id, n.sale_id, n.item_id, n.stage, n.code) = (r.user_id, r.sale_id, r.item_id, r.stage, r.code);
-- reverse: drop index "refusedattempt_user_id_sale_id_item_id_stage_code" from table: "refused_attempts"
DROP INDEX CONCURRENTLY IF EXISTS "refusedattempt_user_id_sale_id_item_id_stage_code";
CREATE UNIQUE INDEX CONCURRENTLY "refusedattempt_user_id_sale_id_item_id_stage_code" ON "refused_attempts" ("user_id", "sale_id", "item_id", "stage", "code");
-- reverse: drop index "refusedattempt_last_at" from table: "refused_attempts"
DROP INDEX CONCURRENTLY IF EXISTS "refusedattempt_last_at";
CREATE INDEX CONCURRENTLY "refusedattempt_last_at" ON "refused_attempts" ("last_at");
-- reverse: create index "refusedattempt_user_id" to table: "refused_attempts"
DROP INDEX CONCURRENTLY IF EXISTS "refusedattempt_user_id";
