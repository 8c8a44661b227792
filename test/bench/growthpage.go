package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// pointsFile has the points of an axis as JSON.
func pointsFile(o options, a axis) string {
	return filepath.Join(filepath.Dir(o.out), "growth-"+a.Name+".json")
}

// writeCurve writes the points of an axis and their curve.
func writeCurve(o options, a axis) error {
	if err := os.MkdirAll(o.curves, 0o750); err != nil {
		return err
	}
	points, err := json.Marshal(a.Points)
	if err != nil {
		return err
	}
	if err := os.WriteFile(pointsFile(o, a), points, 0o600); err != nil {
		return err
	}
	if a.draw != nil {
		return nil // a table
	}
	return os.WriteFile(filepath.Join(o.curves, a.Name+".svg"), curve(a), 0o644)
}

// writeGrowthPage writes the page with all curves, once each axis has been measured.
func writeGrowthPage(o options) error {
	done := axes()
	for i := range done {
		points, err := os.ReadFile(pointsFile(o, done[i]))
		if errors.Is(err, fs.ErrNotExist) {
			say("no page of the curves: %s has not been measured", done[i].Name)
			return nil
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal(points, &done[i].Points); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(filepath.Dir(o.curves), "growth.md"), growthPage(done, time.Now()), 0o644)
}
