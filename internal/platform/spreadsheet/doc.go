// Package spreadsheet reads and writes tables as CSV files that people open and save with
// spreadsheets. It owns encodings, separators and the quoting of formulas; it does not own
// what the columns mean.
package spreadsheet
