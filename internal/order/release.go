package order

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/orderfailure"
	"seckill/internal/periodic"
	"seckill/internal/postgres"
)

const (
	// releaseBatch bounds one transaction, and maxReleaseBatches one step.
	releaseBatch      = 200
	maxReleaseBatches = 10
	// releaseEvery is the pause between steps: a buyer whose task failed may try
	// again about this long after.
	releaseEvery = 500 * time.Millisecond
)

// ReleaseFailures gives back in Redis what failed tasks hold there: units, and
// the mark that the user has bought. It acts only where the holder is that task,
// so that doing it again changes nothing. It returns the items whose gates are being
// built: their tasks have to wait.
type ReleaseFailures func(ctx context.Context, failures []Failure) (building []uuid.UUID, err error)

// FailureReleaser finishes failed tasks: their rows say that the reservation is
// still to be given back. Any number of processes may run it at once.
type FailureReleaser struct {
	db      *postgres.DB
	release ReleaseFailures
	log     *slog.Logger
}

// NewFailureReleaser returns a releaser.
func NewFailureReleaser(db *postgres.DB, release ReleaseFailures, log *slog.Logger) *FailureReleaser {
	return &FailureReleaser{db: db, release: release, log: log}
}

// Loop returns the releaser as a loop.
func (r *FailureReleaser) Loop() periodic.Loop {
	return periodic.Loop{Name: "release failed tasks", Every: releaseEvery, Step: r.Step, Log: r.log}
}

// Step gives back a batch of reservations and then marks the rows. A crash
// between the two repeats the release, which does nothing the second time. Tasks
// that have to wait do not hold up those of other items behind them.
func (r *FailureReleaser) Step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	var waiting []uuid.UUID // items
	for range maxReleaseBatches {
		rows, err := r.db.Ent.OrderFailure.Query().Where(orderfailure.Released(false), orderfailure.ItemIDNotIn(waiting...)).
			Order(ent.Asc(orderfailure.FieldID)).Limit(releaseBatch).All(ctx)
		if err != nil {
			return counts, fmt.Errorf("find failed tasks to release: %w", err)
		}
		if len(rows) == 0 {
			break
		}
		failures := make([]Failure, len(rows))
		for i, row := range rows {
			failures[i] = *failureFromRow(row)
		}
		building, err := r.release(ctx, failures)
		if err != nil {
			return counts, fmt.Errorf("release %d failed tasks: %w", len(rows), err)
		}
		if err := r.mark(ctx, failures, building, counts); err != nil {
			return counts, err
		}
		if len(building) == 0 {
			break
		}
		waiting = append(waiting, building...)
	}
	return counts, nil
}

// mark notes that failed tasks were released, but for those of some items.
func (r *FailureReleaser) mark(ctx context.Context, failures []Failure, building []uuid.UUID, counts map[string]int) error {
	var ids []uuid.UUID
	for _, f := range failures {
		if !slices.Contains(building, f.Item) {
			ids = append(ids, f.ID)
		}
	}
	marked := 0
	err := r.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		var err error
		marked, err = tx.OrderFailure.Update().
			Where(orderfailure.IDIn(ids...), orderfailure.Released(false)).SetReleased(true).Save(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("mark %d failed tasks as released: %w", len(ids), err)
	}
	counts["released"] += marked
	return nil
}
