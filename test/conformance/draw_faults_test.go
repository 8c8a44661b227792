//go:build faults

package conformance

import "testing"

func TestTwoVerifiersAgreeOnTenThousandDraws(t *testing.T) {
	t.Parallel()
	agreeOn(t, 10_000)
}
