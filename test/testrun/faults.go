package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// faultsVariable names the file to which testenv.RecordFault appends its rows.
const faultsVariable = "SECKILL_FAULTS_FILE"

// faultTests selects the tests that `make faults` runs.
const faultTests = "Killed|Many|Thousand|LargeSale|RedisLost|LostMessage|RedisClock|ADeadMaster|Sentinels|" +
	"Standby|NotSoldAgain|InFlightOrdersOf|RebuildThatBegan|OlderDataThanBefore|StockBelowZero|AllFailAlike|TheCopyThatRedis|RollingRestart|" +
	"DeadLettersOutlive|PoisonMessageWaits|FullDisk|RefusesConnections|AreRotated|SlowNetwork|CutAtAnyByte"

// faultRow is a testenv.FaultRow.
type faultRow struct {
	Fault       string        `json:"fault"`
	Accepted    int           `json:"accepted"`
	Stored      int           `json:"stored"`
	Failed      int           `json:"failed"`
	LostUnits   int           `json:"lost_units"`
	Recovery    time.Duration `json:"recovery"`
	MaxRecovery time.Duration `json:"max_recovery"`
	Holds       bool          `json:"holds"`
}

// printFaults prints the table of faults from a file; nothing without rows. Rows that do
// not hold have failed their tests.
func printFaults(w io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var rows []faultRow
	for line := range strings.Lines(string(text)) {
		var row faultRow
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return fmt.Errorf("row of a fault: %w", err)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b faultRow) int { return strings.Compare(a.Fault, b.Fault) })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nFAULT\tACCEPTED\tORDERS STORED\tFAILED\tUNITS LOST\tRECOVERY\tAT MOST\tHOLDS")
	for _, r := range rows {
		holds := "yes"
		if !r.Holds {
			holds = "NO"
		}
		recovery := "-" // the test runs the steps itself
		if r.Recovery > 0 {
			recovery = r.Recovery.Round(100 * time.Millisecond).String()
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", r.Fault, r.Accepted, r.Stored, r.Failed, r.LostUnits, recovery,
			r.MaxRecovery, holds)
	}
	return table.Flush()
}
