package order

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/orderfailure"
	"seckill/internal/periodic"
	"seckill/internal/postgres"
)

const (
	// releaseBatch bounds one step.
	releaseBatch = 200
	// releaseEvery is the pause between steps: a buyer whose task failed may try
	// again about this long after.
	releaseEvery = 500 * time.Millisecond
)

// ReleaseFailures gives back in Redis what failed tasks hold there: units, and
// the mark that the user has bought. It acts only where the holder is that task,
// so that doing it again changes nothing.
type ReleaseFailures func(ctx context.Context, failures []Failure) error

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
// between the two repeats the release, which does nothing the second time.
func (r *FailureReleaser) Step(ctx context.Context) (map[string]int, error) {
	rows, err := r.db.Ent.OrderFailure.Query().Where(orderfailure.Released(false)).
		Order(ent.Asc(orderfailure.FieldID)).Limit(releaseBatch).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find failed tasks to release: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	failures := make([]Failure, 0, len(rows))
	ids := make([]uuid.UUID, 0, len(rows))
	for _, row := range rows {
		failures = append(failures, *failureFromRow(row))
		ids = append(ids, row.ID)
	}
	if err := r.release(ctx, failures); err != nil {
		return nil, fmt.Errorf("release %d failed tasks: %w", len(rows), err)
	}
	marked := 0
	err = r.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		var err error
		marked, err = tx.OrderFailure.Update().
			Where(orderfailure.IDIn(ids...), orderfailure.Released(false)).SetReleased(true).Save(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("mark %d failed tasks as released: %w", len(rows), err)
	}
	return map[string]int{"released": marked}, nil
}
