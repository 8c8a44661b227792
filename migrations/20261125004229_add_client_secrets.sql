-- +goose Up
-- modify "payments" table
ALTER TABLE "payments" ADD COLUMN "client_secret" character varying NOT NULL DEFAULT '';

-- +goose Down
-- reverse: modify "payments" table
ALTER TABLE "payments" DROP COLUMN "client_secret";
