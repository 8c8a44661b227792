-- +goose Up
-- create index "stock_movement_adjustments" to table: "stock_movements"
CREATE INDEX "stock_movement_adjustments" ON "stock_movements" ("item_id", "id") WHERE ((kind)::text = 'ADJUST'::text);

-- +goose Down
-- reverse: create index "stock_movement_adjustments" to table: "stock_movements"
DROP INDEX "stock_movement_adjustments";
