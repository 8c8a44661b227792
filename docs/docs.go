// Package docs holds the pages of the documentation that the server shows.
package docs

import _ "embed"

// Errors is the reference of error codes, in Markdown.
//
//go:embed errors.md
var Errors string
