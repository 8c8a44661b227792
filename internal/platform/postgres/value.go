package postgres

// Value returns the value of a nullable column; that of NULL is the zero value.
func Value[T any](column *T) (value T) {
	if column != nil {
		value = *column
	}
	return value
}
