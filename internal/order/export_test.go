package order

// Waiting returns how many requests wait for a batch.
func Waiting(w *Writer) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending)
}
