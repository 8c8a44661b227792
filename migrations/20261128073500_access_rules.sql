-- +goose Up
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "access" text NOT NULL DEFAULT '';
-- modify "users" table
ALTER TABLE "users" ADD COLUMN "claims" text NOT NULL DEFAULT '';
-- create "access_members" table
CREATE TABLE "access_members" ("id" uuid NOT NULL, "list" character varying NOT NULL, "member" character varying NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "accessmember_list_id" to table: "access_members"
CREATE INDEX "accessmember_list_id" ON "access_members" ("list", "id");
-- create index "accessmember_member_list" to table: "access_members"
CREATE UNIQUE INDEX "accessmember_member_list" ON "access_members" ("member", "list");

-- +goose Down
-- reverse: create index "accessmember_member_list" to table: "access_members"
DROP INDEX "accessmember_member_list";
-- reverse: create index "accessmember_list_id" to table: "access_members"
DROP INDEX "accessmember_list_id";
-- reverse: create "access_members" table
DROP TABLE "access_members";
-- reverse: modify "users" table
ALTER TABLE "users" DROP COLUMN "claims";
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "access";
