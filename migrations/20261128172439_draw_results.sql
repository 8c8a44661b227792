-- +goose Up
-- modify "draw_leaves" table
ALTER TABLE "draw_leaves" ADD COLUMN "ranked" bytea NULL;
-- modify "item_draws" table
ALTER TABLE "item_draws" ADD COLUMN "value_source" character varying NOT NULL DEFAULT '', ADD COLUMN "told" bigint NOT NULL DEFAULT 0;

-- +goose Down
-- reverse: modify "item_draws" table
ALTER TABLE "item_draws" DROP COLUMN "told", DROP COLUMN "value_source";
-- reverse: modify "draw_leaves" table
ALTER TABLE "draw_leaves" DROP COLUMN "ranked";
