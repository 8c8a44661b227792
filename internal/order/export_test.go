package order

// Waiting returns how many requests wait for a batch.
func Waiting(w *Writer) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending)
}

// InFlight returns how many batches may be under way at once.
func InFlight(w *Writer) int { return w.inFlight }
