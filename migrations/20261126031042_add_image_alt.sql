-- +goose Up
-- modify "goods" table
ALTER TABLE "goods" ADD COLUMN "image_alt" character varying NULL;

-- +goose Down
-- reverse: modify "goods" table
ALTER TABLE "goods" DROP COLUMN "image_alt";
