// Package collect makes slices and maps of the elements of a slice.
package collect

// Map returns the results of f, in the order of the elements.
func Map[T, R any](elements []T, f func(T) R) []R {
	results := make([]R, len(elements))
	for i, e := range elements {
		results[i] = f(e)
	}
	return results
}

// Index returns the elements by their keys; of elements with the same key the last one.
func Index[T any, K comparable](elements []T, key func(T) K) map[K]T {
	index := make(map[K]T, len(elements))
	for _, e := range elements {
		index[key(e)] = e
	}
	return index
}

// Set returns the elements as a set.
func Set[T comparable](elements []T) map[T]bool {
	set := make(map[T]bool, len(elements))
	for _, e := range elements {
		set[e] = true
	}
	return set
}
