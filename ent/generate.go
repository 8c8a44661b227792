// Package ent is the data access layer: the tables in ent/schema are written by
// hand, everything else here is generated from them by `make generate`.
package ent

//go:generate go run -C .. ./internal/platform/postgres/entgen
