package config

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Given is a setting for a new file of settings.
type Given struct {
	Flag  string // its name as a flag
	Value string
	Note  string // a comment above it
	// Empty settings stand in the file as a comment, to be filled in.
	Empty bool
}

// CreateFile writes a file of settings that only its owner can read. A file that is there
// is not overwritten.
func CreateFile(path string, given []Given) error {
	text, err := fileText(given)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	_, err = f.WriteString(text)
	if err := cmp.Or(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path)
		return fmt.Errorf("write the settings: %w", err)
	}
	return nil
}

// fileText returns settings in TOML: those of tables last.
func fileText(given []Given) (string, error) {
	var b strings.Builder
	table := ""
	given = slices.Clone(given)
	slices.SortStableFunc(given, func(a, b Given) int { return cmp.Compare(tableOf(a.Flag), tableOf(b.Flag)) })
	for _, g := range given {
		if t := tableOf(g.Flag); t != table {
			table = t
			fmt.Fprintf(&b, "\n[%s]\n", table)
		}
		line, err := toml.Marshal(map[string]string{fileKey(g.Flag[strings.LastIndex(g.Flag, ".")+1:]): g.Value})
		if err != nil {
			return "", fmt.Errorf("write %s: %w", Name(g.Flag), err)
		}
		if g.Note != "" {
			fmt.Fprintf(&b, "# %s\n", g.Note)
		}
		if g.Empty {
			b.WriteString("# ")
		}
		b.Write(line)
	}
	return b.String(), nil
}

// tableOf returns the table of the file in which a setting stands, "" for none.
func tableOf(flag string) string {
	if at := strings.LastIndex(flag, "."); at >= 0 {
		return fileKey(flag[:at])
	}
	return ""
}
