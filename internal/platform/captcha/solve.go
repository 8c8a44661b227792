package captcha

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// Solve computes the answer to the parameters of a proof of work, as a client does.
func Solve(parameters string) (answer string, err error) {
	var p workParameters
	if err := json.Unmarshal([]byte(parameters), &p); err != nil {
		return "", fmt.Errorf("read proof of work: %w", err)
	}
	want, err := hex.DecodeString(p.Challenge)
	if err != nil {
		return "", fmt.Errorf("read proof of work: %w", err)
	}
	text := []byte(p.Salt)
	for n := range p.MaxNumber + 1 {
		text = strconv.AppendInt(text[:len(p.Salt)], n, 10)
		if sum := sha256.Sum256(text); bytes.Equal(sum[:], want) {
			return strconv.FormatInt(n, 10), nil
		}
	}
	return "", fmt.Errorf("no number up to %d solves the proof of work", p.MaxNumber)
}
