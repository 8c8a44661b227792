package refusal

// Bounds of the rows that wait in memory, of one transaction and of the time of a flush.
const (
	MaxWaiting  = maxWaiting
	WriteBatch  = writeBatch
	FlushBudget = flushBudget
)
