package config

import "strings"

// Seller are the settings of receipts.
type Seller struct {
	SellerName    string `group:"payments" placeholder:"NAME" help:"Name of the seller on receipts. Without it, receipts name none."`
	SellerDetails string `group:"payments" placeholder:"LINES" help:"Address, registration and tax number of the seller on receipts; lines are separated by |."`
	SellerTaxName string `default:"VAT" group:"payments" help:"Name of the tax that prices contain, on receipts."`
	SellerTaxRate string `group:"payments" placeholder:"PERCENT" help:"Its rate in percent: 19, or 8.1. Without it, receipts name no tax."`
}

// SellerLines returns the lines of SellerDetails.
func (c *Config) SellerLines() (lines []string) {
	for line := range strings.SplitSeq(c.SellerDetails, "|") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
