package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/sale"
)

const (
	// keysTimeout is the timeout of the request for a key set.
	keysTimeout = 10 * time.Second
	// maxKeys bounds a key set, in bytes.
	maxKeys = 64 << 10
)

type verifyCmd struct {
	Draw    verifyDrawCmd    `cmd:"" help:"Check a number of a draw with the seed of the item."`
	Receipt verifyReceiptCmd `cmd:"" help:"Check a signed receipt with the public keys of the shop."`
}

type verifyDrawCmd struct {
	Commitment string `required:"" help:"SaleItem.draw.commitment, as it was before the opening."`
	Seed       string `required:"" help:"SaleItem.draw.seed, public a minute after the opening."`
	Nonce      string `required:"" help:"The drawNonce that was sent with enterQueue."`
	Number     string `required:"" help:"QueueTicket.draw.number."`
}

// Help returns the examples.
func (verifyDrawCmd) Help() string {
	return "Checks that the seed is the one to which the shop committed before the opening, and that the number follows from seed and nonce.\n" +
		"It reads no service. docs/fairness.md explains the draw.\n\n" +
		examples("seckill verify draw --commitment 9f86d081… --seed 60303ae2… --nonce 5f2c17a0b4e94d0c --number 2251799813685248")
}

// Run prints the verdict.
func (c verifyDrawCmd) Run(call *call) error {
	seed, err := sale.ParseDrawSeed(c.Seed)
	if err != nil {
		return fmt.Errorf("--seed: %w", err)
	}
	number, err := strconv.ParseUint(c.Number, 10, 64)
	if err != nil {
		return errors.New("--number: give the decimal digits of QueueTicket.draw.number")
	}
	out := call.env.stdout
	if seed.Commitment() != strings.ToLower(c.Commitment) {
		fmt.Fprintf(out, "The shop committed to another seed: the SHA-256 of this one is %s.\n", seed.Commitment())
		return errFinding
	}
	if want := seed.Number(c.Nonce); want != number {
		fmt.Fprintf(out, "The number does not follow from seed and nonce: it should be %d.\n", want)
		return errFinding
	}
	fmt.Fprintln(out, "The number follows from the seed to which the shop committed and from the nonce.")
	return nil
}

type verifyReceiptCmd struct {
	Receipt string `arg:"" help:"OrderTask.signedReceipt, or - to read it from standard input."`
	Keys    string `required:"" placeholder:"URL|FILE" help:"The key set of the shop: https://shop.example.com/.well-known/jwks.json, or a copy of it."`
}

// Help returns the examples.
func (verifyReceiptCmd) Help() string {
	return "Prints what a receipt says if a key of the set signed it. It reads no service but the address of the keys.\n\n" +
		examples("seckill verify receipt eyJhbGciOiJFZERTQSIs… --keys https://shop.example.com/.well-known/jwks.json",
			"seckill verify receipt - --keys jwks.json <receipt.txt")
}

// Run prints the claims.
func (c verifyReceiptCmd) Run(call *call) error {
	text := c.Receipt
	if text == "-" {
		read, err := io.ReadAll(io.LimitReader(call.env.stdin, maxKeys))
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		text = string(read)
	}
	keys, err := keySet(call.ctx, c.Keys)
	if err != nil {
		return fmt.Errorf("--keys: %w", err)
	}
	claims, err := acceptance.Verify(strings.TrimSpace(text), keys)
	if err != nil {
		fmt.Fprintf(call.env.stdout, "The receipt is not valid: %v.\n", err)
		return errFinding
	}
	return printJSON(call.env.stdout, claims)
}

// keySet reads a key set from an address or a file.
func keySet(ctx context.Context, from string) ([]byte, error) {
	if !strings.HasPrefix(from, "https://") && !strings.HasPrefix(from, "http://") {
		return os.ReadFile(from)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Timeout: keysTimeout}).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", from, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxKeys))
}
