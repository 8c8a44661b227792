-- +goose Up
-- modify "payments" table
ALTER TABLE "payments" ADD COLUMN "product" character varying NOT NULL DEFAULT '', ADD COLUMN "language" character varying NOT NULL DEFAULT '', ADD COLUMN "return_url" character varying NOT NULL DEFAULT '';
-- modify "sandbox_charges" table
ALTER TABLE "sandbox_charges" ADD COLUMN "language" character varying NOT NULL DEFAULT '', ADD COLUMN "return_url" character varying NOT NULL DEFAULT '';

-- +goose Down
-- reverse: modify "sandbox_charges" table
ALTER TABLE "sandbox_charges" DROP COLUMN "return_url", DROP COLUMN "language";
-- reverse: modify "payments" table
ALTER TABLE "payments" DROP COLUMN "return_url", DROP COLUMN "language", DROP COLUMN "product";
