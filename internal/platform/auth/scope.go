package auth

import (
	"slices"
	"strings"
)

// Scope is a right of a service token. A scope that writes includes the one that reads.
type Scope string

// Scopes of service tokens.
const (
	CatalogueRead  Scope = "CATALOGUE_READ"
	CatalogueWrite Scope = "CATALOGUE_WRITE"
	SalesRead      Scope = "SALES_READ"
	SalesWrite     Scope = "SALES_WRITE"
	OrdersRead     Scope = "ORDERS_READ"
	OrdersWrite    Scope = "ORDERS_WRITE"
	Exports        Scope = "EXPORTS"
	EventsRead     Scope = "EVENTS_READ"
	UsersRead      Scope = "USERS_READ"
	UsersWrite     Scope = "USERS_WRITE"
)

// Scopes lists every scope.
func Scopes() []Scope {
	return []Scope{CatalogueRead, CatalogueWrite, SalesRead, SalesWrite, OrdersRead, OrdersWrite, Exports, EventsRead,
		UsersRead, UsersWrite}
}

// Valid reports whether the scope is one of the constants.
func (s Scope) Valid() bool { return slices.Contains(Scopes(), s) }

// String returns the scope as the command line writes it: catalogue:read.
func (s Scope) String() string { return strings.ToLower(strings.ReplaceAll(string(s), "_", ":")) }

// ParseScope returns the scope with a name of the command line.
func ParseScope(name string) (Scope, bool) {
	for _, s := range Scopes() {
		if s.String() == name {
			return s, true
		}
	}
	return "", false
}

// grants reports whether a token with scope s may do what needs scope needed.
func (s Scope) grants(needed Scope) bool {
	return s == needed || strings.TrimSuffix(string(s), "_WRITE")+"_READ" == string(needed)
}
