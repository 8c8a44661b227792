package transport

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/internal/platform/fault"
)

// public returns errors about documents and variables in the form for clients: without
// quoted values, and with names for callers who may know them.
func (h *Handler) public(ctx context.Context, errs gqlerror.List, variables map[string]any) gqlerror.List {
	names := h.opts.Development || h.opts.Names != nil && h.opts.Names(ctx)
	out := make(gqlerror.List, len(errs))
	for i, err := range errs {
		code := codeOf(err)
		aboutVariable := len(err.Path) > 0 && err.Path[0] == ast.PathName("variable")
		if aboutVariable {
			code = string(fault.BadInput)
		}
		message := unquoted(err.Message)
		if aboutVariable {
			message = aboutNumber(message, err.Path[1:], variables)
		}
		if !names {
			message = terse(code, message)
		}
		out[i] = &gqlerror.Error{Message: message, Locations: err.Locations, Extensions: err.Extensions}
		if names || !aboutVariable {
			out[i].Path = err.Path
		}
		if aboutVariable {
			out[i].Extensions = map[string]any{"code": code}
		}
	}
	return out
}

// aboutNumber replaces a message of gqlparser about a number that does not fit an Int or a
// Float: it shows another number than the one that was sent, or the kind of a Go value.
func aboutNumber(message string, path ast.Path, variables map[string]any) string {
	at := strings.LastIndex(message, " as ")
	if at < 0 || !strings.HasPrefix(message, "cannot use ") {
		return message
	}
	var sent any = variables
	for _, element := range path {
		switch e := element.(type) {
		case ast.PathName:
			object, _ := sent.(map[string]any)
			sent = object[string(e)]
		case ast.PathIndex:
			if list, ok := sent.([]any); ok && int(e) < len(list) {
				sent = list[e]
			}
		}
	}
	number, ok := sent.(json.Number)
	if !ok || len(number) > maxQuotedNumber {
		return "The value is not a valid " + message[at+len(" as "):] + "."
	}
	return "The value " + string(number) + " is not a valid " + message[at+len(" as "):] + "."
}

// maxQuotedNumber is the longest number that a message has, in digits.
const maxQuotedNumber = 32

// unquoted removes the values that gqlparser's messages quote: of a variable, a literal,
// or an unparsable document.
func unquoted(message string) string {
	if _, rest, found := strings.Cut(message, " is not a valid "); found {
		return "The value is not a valid " + rest
	}
	if message == "operation  not found" { // the request named no operation
		return "The document has several operations: say which by operationName."
	}
	if strings.HasPrefix(message, "operation ") && strings.HasSuffix(message, " not found") {
		return "The document has no operation of that name."
	}
	for _, before := range []string{" value:", " escape sequence:", `String "`} {
		if i := strings.Index(message, before); i >= 0 {
			return message[:i] + strings.TrimRight(before, `: "`) + "."
		}
	}
	if head, _, found := strings.Cut(message, ", found "); found && strings.HasPrefix(message, "Expected value of type") {
		return head + "."
	}
	return message
}

// terse returns the message for an invalid document without names of the schema.
func terse(code, message string) string {
	switch code {
	case "GRAPHQL_PARSE_FAILED":
		return "The document cannot be parsed."
	case "GRAPHQL_VALIDATION_FAILED":
		return "The document does not fit the schema."
	case string(fault.BadInput):
		return "A variable has a value that does not fit its type."
	default:
		return message
	}
}
