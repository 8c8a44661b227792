package refusal

import "context"

// Bounds of the rows that wait in memory, of one transaction and of the time of a flush.
const (
	MaxWaiting  = maxWaiting
	WriteBatch  = writeBatch
	FlushBudget = flushBudget
)

// WriteUnsettled writes one batch as if the reply of the commit were lost.
func (l *Log) WriteUnsettled(ctx context.Context) error { return l.write(ctx, l.take()) }
