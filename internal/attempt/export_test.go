package attempt

// MaxWaiting is the bound of the rows that wait in memory.
const MaxWaiting = maxWaiting
