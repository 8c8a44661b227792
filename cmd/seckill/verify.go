package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"seckill/internal/app/server"
	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/draw"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
)

const (
	// keysTimeout is the timeout of the request for a key set, or another file of a shop.
	keysTimeout = 10 * time.Second
	// maxKeys bounds a key set, in bytes.
	maxKeys = 64 << 10
	// maxTile bounds a file of a log, in bytes: 256 entries of at most 512 characters.
	maxTile = 1 << 20
)

type verifyCmd struct {
	Draw    verifyDrawCmd    `cmd:"" help:"Check the file of a draw sale, or a number of the draw of a waiting room."`
	Receipt verifyReceiptCmd `cmd:"" help:"Check a signed receipt with the public keys of the shop."`

	Acceptances verifyAcceptancesCmd `cmd:"" help:"Check the log of what a sale accepted: no item has more orders than units."`
}

type verifyDrawCmd struct {
	Commitment string `help:"SaleItem.draw.commitment, as it was before the opening."`
	Seed       string `help:"SaleItem.draw.seed, public a minute after the opening."`
	Nonce      string `help:"The drawNonce that was sent with enterQueue, or the nonce of the entry."`
	Number     string `help:"QueueTicket.draw.number."`

	File  string `placeholder:"FILE" help:"The file of a draw sale; - reads standard input."`
	Keys  string `placeholder:"URL|FILE" help:"The key set of the shop: who signed the root is checked with it."`
	Root  string `placeholder:"HEX" help:"The root as it was noted before the round."`
	Entry string `placeholder:"ID" help:"The entry whose rank is wanted; with --nonce."`
}

func (verifyDrawCmd) Help() string {
	return "Checks the file of a draw sale: the leaves give the root, the root is older than the random value, the order follows from both, and the offers follow the order. " +
		"For the draw of a waiting room: that the seed is the one to which the shop committed before the opening, and that the number follows from seed and nonce.\n" +
		"It reads no service but the address of the keys. docs/fairness.md has the rules.\n\n" +
		examples("seckill verify draw --file draw.json --keys https://shop.example.com/.well-known/jwks.json --entry wtl_01… --nonce 5f2c17a0b4e94d0c",
			"seckill verify draw --commitment 9f86d081… --seed 60303ae2… --nonce 5f2c17a0b4e94d0c --number 2251799813685248")
}

func (c verifyDrawCmd) Run(call *call) error {
	if c.File != "" {
		return c.file(call)
	}
	if c.Commitment == "" || c.Seed == "" || c.Nonce == "" || c.Number == "" {
		return errors.New("give --file, or all of --commitment, --seed, --nonce and --number")
	}
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

// file prints the verdict on the file of a draw sale.
func (c verifyDrawCmd) file(call *call) error {
	if (c.Entry == "") != (c.Nonce == "") {
		return errors.New("--entry and --nonce belong together")
	}
	var entry id.Waitlist
	if c.Entry != "" {
		var err error
		if entry, err = id.ParseWaitlist(c.Entry); err != nil {
			return fmt.Errorf("--entry: %w", err)
		}
	}
	in := call.env.stdin
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	var keys []byte
	if c.Keys != "" {
		var err error
		if keys, err = fetch(call.ctx, c.Keys, maxKeys); err != nil {
			return fmt.Errorf("--keys: %w", err)
		}
	}
	out := call.env.stdout
	record, err := draw.Decode(in)
	if err == nil {
		err = record.Check(draw.Quicknet())
	}
	if err == nil && keys != nil {
		err = checkRoot(record, keys)
	}
	if err == nil && c.Root != "" && c.Root != fmt.Sprintf("%x", record.Root) {
		err = fmt.Errorf("its root is %x", record.Root)
	}
	if err != nil {
		fmt.Fprintf(out, "The draw is not genuine: %v.\n", err)
		return errFinding
	}
	fmt.Fprintf(out, "%d entries were drawn by the rules, with the root %x.\n", record.Count, record.Root)
	if record.Source == draw.SourceQuicknet {
		fmt.Fprintf(out, "The random value is round %d of %s, published at %s, %s after the root.\n", record.Round, record.Source,
			draw.RoundTime(record.Round).UTC().Format(time.RFC3339),
			draw.RoundTime(record.Round).Sub(time.Unix(record.RootPublishedAt, 0)))
	} else {
		fmt.Fprintf(out, "The random value is %q, from %q. The file does not show that the shop did not choose it.\n",
			record.Value, record.Source)
	}
	if keys == nil {
		fmt.Fprintln(out, "Not checked: who signed the root (--keys).")
	}
	if c.Root == "" {
		fmt.Fprintln(out, "Not checked: whether the root was public before the random value (--root, as you noted it).")
	}
	if c.Entry == "" {
		return nil
	}
	rank, ok := record.Rank(draw.LeafHash(entry, c.Nonce))
	if !ok {
		fmt.Fprintln(out, "The entry with this nonce is not in the draw.")
		return errFinding
	}
	fmt.Fprintf(out, "The entry has rank %d; %d ranks had their turn.\n", rank, len(record.Offers))
	return nil
}

func checkRoot(record *draw.Record, keys []byte) error {
	var signed draw.Commitment
	if err := acceptance.VerifyAs(draw.CommitmentType, record.SignedRoot, keys, &signed); err != nil {
		return fmt.Errorf("signed root: %w", err)
	}
	return record.CheckCommitment(signed)
}

type verifyReceiptCmd struct {
	Receipt string `arg:"" help:"OrderTask.signedReceipt, or - to read it from standard input."`
	Keys    string `required:"" placeholder:"URL|FILE" help:"The key set of the shop: https://shop.example.com/.well-known/jwks.json, or a copy of it."`
	Proof   string `placeholder:"URL|FILE" help:"The proof that the acceptance is in the log of the sale: https://shop.example.com/acceptances/SALE/proof/TASK."`
}

func (verifyReceiptCmd) Help() string {
	return "Prints what a receipt says if a key of the set signed it. It reads no service but the address of the keys.\n\n" +
		examples("seckill verify receipt eyJhbGciOiJFZERTQSIs… --keys https://shop.example.com/.well-known/jwks.json",
			"seckill verify receipt - --keys jwks.json <receipt.txt")
}

func (c verifyReceiptCmd) Run(call *call) error {
	text := c.Receipt
	if text == "-" {
		read, err := io.ReadAll(io.LimitReader(call.env.stdin, maxKeys))
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		text = string(read)
	}
	keys, err := fetch(call.ctx, c.Keys, maxKeys)
	if err != nil {
		return fmt.Errorf("--keys: %w", err)
	}
	claims, err := acceptance.Verify(strings.TrimSpace(text), keys)
	if err != nil {
		fmt.Fprintf(call.env.stdout, "The receipt is not valid: %v.\n", err)
		return errFinding
	}
	if c.Proof != "" {
		proof, err := fetch(call.ctx, c.Proof, maxKeys)
		if err != nil {
			return fmt.Errorf("--proof: %w", err)
		}
		if err := checkProof(claims, proof, keys); err != nil {
			fmt.Fprintf(call.env.stdout, "The acceptance is not in the log of the sale: %v.\n", err)
			return errFinding
		}
	}
	return printJSON(call.env.stdout, claims)
}

// checkProof checks that the log of the sale has the acceptance of a receipt.
func checkProof(claims acceptance.Claims, proof, keys []byte) error {
	entry, head, err := acceptance.VerifyProof(proof, keys)
	if err != nil {
		return err
	}
	want := acceptance.LogEntry{
		Kind: acceptance.Accepted, Task: claims.ID, Item: claims.Item, Quantity: claims.Quantity,
		Buyer: acceptance.BuyerHash(claims.ID, claims.Subject), At: entry.At,
	}
	if entry != want || !strings.HasSuffix(head.Origin, acceptance.LogsPath[1:]+claims.Sale) {
		return fmt.Errorf("the proof is of %+v in %s", entry, head.Origin)
	}
	return nil
}

type verifyAcceptancesCmd struct {
	Log   string   `arg:"" placeholder:"URL|DIR" help:"Address of the log, https://shop.example.com/acceptances/SALE, or a directory with a copy of its files."`
	Keys  string   `placeholder:"URL|FILE" help:"The key set of the shop, if it is not at the address of the log."`
	Stock []string `placeholder:"[ITEM=]N" help:"Units that were announced, of an item or of each item; repeat it for several."`
	Since []string `placeholder:"FILE" help:"Checkpoint that was noted earlier: the log must continue it; repeat it for several."`
}

func (verifyAcceptancesCmd) Help() string {
	return "Reads a whole log, and checks that its entries and tiles give the root that the shop signed, and that at no time more units were taken than were announced. " +
		"docs/fairness.md describes the log.\n\n" +
		examples("seckill verify acceptances https://shop.example.com/acceptances/sal_01… --stock 500",
			"seckill verify acceptances copy/ --keys jwks.json --stock itm_01…=500 --since checkpoint-at-noon")
}

func (c verifyAcceptancesCmd) Run(call *call) error {
	most, err := c.units()
	if err != nil {
		return err
	}
	from := c.Keys
	if from == "" {
		u, err := url.Parse(c.Log)
		if err != nil || u.Host == "" {
			return errors.New("--keys: give the key set of the shop")
		}
		from = u.ResolveReference(&url.URL{Path: server.KeysPath}).String()
	}
	keys, err := fetch(call.ctx, from, maxKeys)
	if err != nil {
		return fmt.Errorf("--keys: %w", err)
	}
	earlier := make([][]byte, len(c.Since))
	for i, file := range c.Since {
		if earlier[i], err = os.ReadFile(file); err != nil {
			return fmt.Errorf("--since: %w", err)
		}
	}
	var unread error // of the last file that could not be read
	report, err := acceptance.VerifyLog(call.ctx, func(ctx context.Context, path string) ([]byte, error) {
		text, err := fetch(ctx, strings.TrimSuffix(c.Log, "/")+"/"+path, maxTile)
		unread = err
		return text, err
	}, keys, earlier...)
	if unread != nil {
		return unread
	}
	if err != nil {
		fmt.Fprintf(call.env.stdout, "The log is not genuine: %v.\n", err)
		return errFinding
	}
	if err := printJSON(call.env.stdout, report); err != nil {
		return err
	}
	over := false
	for item, units := range report.Items {
		n, known := most[item]
		if !known {
			n, known = most[""]
		}
		if known && units.Most > n {
			over = true
			fmt.Fprintf(call.env.stdout, "Of %s, %d units were taken at one time, %d were announced.\n", item, units.Most, n)
		}
	}
	if over {
		return errFinding
	}
	return nil
}

// units returns the announced units by item; "" = of each item.
func (c verifyAcceptancesCmd) units() (map[string]int, error) {
	units := map[string]int{}
	for _, text := range c.Stock {
		item, digits, ok := strings.Cut(text, "=")
		if !ok {
			item, digits = "", text
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("--stock: %q is no number of units", text)
		}
		units[item] = n
	}
	return units, nil
}

// fetch reads an address or a file of at most a number of bytes.
func fetch(ctx context.Context, from string, most int64) ([]byte, error) {
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
	return io.ReadAll(io.LimitReader(resp.Body, most))
}
