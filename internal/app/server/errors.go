package server

import (
	"bytes"
	"html/template"
	"net/http"
	"regexp"
	"strings"
)

// errorTemplate is the page of error codes. Each code is a fragment, which errors link to.
var errorTemplate = template.Must(template.New("errors").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Error codes</title></head>
<body><main><h1>Error codes</h1>
{{range .}}<section id="{{.Code}}"><h2><code>{{.Code}}</code></h2><p>{{.Cause}}</p><p><b>What a client does:</b> {{.Action}}</p></section>
{{end}}</main></body></html>
`))

// errorCode is a row of the reference of error codes.
type errorCode struct {
	Code          string
	Cause, Action template.HTML // of docs/errors.md
}

var (
	errorRow = regexp.MustCompile("(?m)^\\| `?([A-Z_]+|[0-9]{4})`? (\\|.+\\|)\\s*$")
	status   = regexp.MustCompile(`^([0-9]{3})?$`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
	mdLink   = regexp.MustCompile(`\[([^]]+)\]\([^)]+\)`)
)

// errorPage returns the page of the codes in the tables of a Markdown text.
func errorPage(reference string) http.Handler {
	var rows []errorCode
	for _, row := range errorRow.FindAllStringSubmatch(reference, -1) {
		cells := strings.Split(strings.Trim(row[2], "|"), "|")
		if len(cells) > 2 && status.MatchString(strings.TrimSpace(cells[0])) {
			cells = cells[1:] // the HTTP status
		}
		if len(cells) > 1 {
			rows = append(rows, errorCode{row[1], inline(cells[0]), inline(cells[1])})
		}
	}
	var page bytes.Buffer
	err := errorTemplate.Execute(&page, rows)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = w.Write(page.Bytes()) // the reader has gone
	})
}

// inline converts code and links of a line of Markdown.
func inline(line string) template.HTML {
	line = mdLink.ReplaceAllString(template.HTMLEscapeString(strings.TrimSpace(line)), "$1")
	return template.HTML(codeSpan.ReplaceAllString(line, "<code>$1</code>")) //nolint:gosec // escaped above
}
