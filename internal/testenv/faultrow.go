package testenv

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// faultsVariable names the file for the rows of `make faults`; test/testrun prints them.
const faultsVariable = "SECKILL_FAULTS_FILE"

// Bounds of a recovery in `make faults`. Other runs do not check them: their machines may
// be slow.
const (
	MaxRecovery           = 30 * time.Second
	MaxDeadMasterRecovery = 10 * time.Second
)

// FaultRow is the result of one fault: a row of the table of `make faults`.
type FaultRow struct {
	Fault     string `json:"fault"`
	Accepted  int    `json:"accepted"`   // buyers whose attempt was accepted
	Stored    int    `json:"stored"`     // orders in Postgres
	Failed    int    `json:"failed"`     // accepted attempts whose buyers see FAILED
	LostUnits int    `json:"lost_units"` // of the stock that was put on sale
	// from the fault to the next success; 0 = the test runs the steps itself
	Recovery    time.Duration `json:"recovery"`
	MaxRecovery time.Duration `json:"max_recovery"` // 0 = MaxRecovery
	Holds       bool          `json:"holds"`        // set by RecordFault
}

// RecordFault checks a row, and appends it to the table when `make faults` runs the test.
// It fails the test for an accepted buyer with neither an order nor a failure, for a lost unit,
// and, under `make faults`, for a recovery that took too long.
func RecordFault(t testing.TB, row FaultRow) {
	t.Helper()
	if row.MaxRecovery == 0 {
		row.MaxRecovery = MaxRecovery
	}
	kept := row.Accepted <= row.Stored+row.Failed && row.LostUnits == 0
	row.Holds = kept && row.Recovery <= row.MaxRecovery
	path := os.Getenv(faultsVariable)
	if !kept || path != "" && !row.Holds {
		t.Errorf("fault: %+v", row)
	}
	if path == "" {
		return
	}
	line, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil { // one write: tests of several processes append
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
