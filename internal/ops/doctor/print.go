package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteJSON prints {ok, findings}.
func WriteJSON(out io.Writer, findings []Finding) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(struct {
		OK       bool      `json:"ok"`
		Findings []Finding `json:"findings"`
	}{Healthy(findings), findings}); err != nil {
		return fmt.Errorf("print findings: %w", err)
	}
	return nil
}

// WriteTable prints one line for each finding.
func WriteTable(out io.Writer, findings []Finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", f.Level, f.Area, f.Message); err != nil {
			return fmt.Errorf("print findings: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print findings: %w", err)
	}
	return nil
}
